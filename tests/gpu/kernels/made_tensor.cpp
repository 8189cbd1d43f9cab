#include "made_tensor.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

void put_u16(std::byte* at, unsigned value) {
  const auto narrow = static_cast<std::uint16_t>(value);
  std::memcpy(at, &narrow, sizeof narrow);
}

/// fp16 bits of a positive number between 2^-9 and 2^-5, so that sums neither vanish nor overflow.
unsigned random_half(std::mt19937& random) {
  return static_cast<unsigned>((6 + random() % 4) << 10 | random() % 1024);
}

/// Random blocks have random quants; their fp16 fields must be ordinary numbers.
void fix_block(tensor_kind kind, std::byte* block, std::mt19937& random) {
  switch (kind) {
    case tensor_kind::q4_0:
    case tensor_kind::q5_0:
      put_u16(block, random_half(random));
      break;
    case tensor_kind::q8_0:
      put_u16(block, random_half(random) - (3U << 10));
      break;
    case tensor_kind::q4_1:
    case tensor_kind::q5_1:
      put_u16(block, random_half(random));
      put_u16(block + 2, random_half(random) | 0x8000U);
      break;
    case tensor_kind::q4_k:
    case tensor_kind::q5_k:
      put_u16(block, random_half(random) - (5U << 10));
      put_u16(block + 2, random_half(random) - (5U << 10));
      break;
    case tensor_kind::q6_k:
      put_u16(block + 208, random_half(random) - (5U << 10));
      break;
    case tensor_kind::f32:
    case tensor_kind::f16:
    case tensor_kind::bf16:
      break;
  }
}

void fill_float(tensor_kind kind, std::byte* at, std::mt19937& random) {
  if (kind == tensor_kind::f16) return put_u16(at, random_half(random) | static_cast<unsigned>(random() % 2) << 15);
  const float value = std::normal_distribution<float>(0.0F, 0.05F)(random);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (kind == tensor_kind::bf16) return put_u16(at, bits >> 16);
  std::memcpy(at, &bits, sizeof bits);
}

}  // namespace

made_tensor::made_tensor(tensor_kind kind, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  const model::kind_traits& traits = model::traits(kind);
  const auto blocks = static_cast<std::size_t>(rows * columns / traits.block_elements);
  const auto size = static_cast<std::size_t>(traits.block_bytes);
  bytes.resize(blocks * size);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t block = 0; block < blocks; ++block) {
    std::byte* at = bytes.data() + block * size;
    if (traits.block_elements == 1) {
      fill_float(kind, at, random);
    } else {
      fix_block(kind, at, random);
    }
  }
  weight.name = std::string(traits.name);
  weight.kind = kind;
  weight.rows = rows;
  weight.columns = columns;
  weight.data = bytes;
  weight.file = "made";
}

std::vector<float> made_tensor::values() const {
  std::vector<float> out(static_cast<std::size_t>(weight.rows * weight.columns));
  for (std::int64_t row = 0; row < weight.rows; ++row) {
    model::dequantize_row(weight, row, out.data() + row * weight.columns);
  }
  return out;
}

std::vector<isa> offered_isas() {
  std::vector<isa> sets;
  for (const isa set : {isa::portable, isa::avx2, isa::avx512, isa::amx}) {
    if (choose_isa(isa_name(set))) sets.push_back(set);
  }
  return sets;
}

std::vector<float> made_inputs(std::int32_t rows, std::int32_t columns, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (float& value : out) value = normal(random);
  const std::size_t large = columns > 7 ? 7 : 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    out[row * static_cast<std::size_t>(columns) + large] *= 10;
  }
  return out;
}

packed_matrix packed(const std::vector<const model::tensor*>& weights, packing how, isa set) {
  const auto on_this_thread = [](std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) {
    body(0, count);
  };
  result<packed_matrix> matrix = packed_matrix::pack(weights, how, set, on_this_thread);
  EXPECT_TRUE(matrix.has_value()) << (matrix ? "" : matrix.error().message);
  return matrix ? std::move(*matrix) : packed_matrix();
}

std::vector<float> product(const packed_matrix& matrix, isa set, const std::vector<float>& inputs, std::int32_t rows) {
  activations x(matrix.wants(), rows, static_cast<std::int32_t>(matrix.columns()));
  x.convert(set, inputs.data(), 0, rows);
  std::vector<float> out(static_cast<std::size_t>(rows * matrix.rows()));
  matrix.multiply(x, rows, 0, matrix.tiles(), out.data(), matrix.rows());
  return out;
}

}  // namespace tandem::gpu::host

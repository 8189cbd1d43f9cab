#include "gpu/host/kernels/table_check.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "core/assert.hpp"
#include "gpu/host/aligned_bytes.hpp"
#include "gpu/reference/matmul_reference.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

/// Numbers that are the same everywhere (Knuth's MMIX generator).
class number_source {
 public:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(state_ >> 33);
  }
  /// In [-1, 1).
  float next_float() { return static_cast<float>(next() % (1U << 24)) * 0x1p-23F - 1.0F; }

 private:
  std::uint64_t state_ = 1;
};

/// One in 256 is far larger than the rest: rows need their second terms here and there.
std::vector<float> random_floats(std::size_t count, number_source& source) {
  std::vector<float> out(count);
  for (float& value : out) value = source.next_float() * (source.next() % 256 == 0 ? 64.0F : 1.0F);
  return out;
}

/// One packed tile of an int8 format: any quants, ordinary fp16 numbers at the start of each header.
aligned_bytes random_tile(packed_format format, std::int32_t columns, number_source& source) {
  const format_layout layout = layout_of(format);
  const std::size_t size = tile_bytes(format, columns);
  aligned_bytes tile = allocate_aligned(size);
  TANDEM_ASSERT(tile != nullptr);
  const bool is_five_bits = format == packed_format::byte_half_min || format == packed_format::byte_super_min;
  for (std::size_t i = 0; i < size; ++i)
    tile[i] = static_cast<std::byte>(source.next() & (is_five_bits ? 0x1FU : 0xFFU));
  const std::size_t unit = layout.header_bytes + static_cast<std::size_t>(layout.blocks_per_unit) * layout.plane_bytes;
  for (std::size_t at = 0; at < size; at += unit) {
    for (std::size_t i = 0; i < 32; ++i) {
      const auto half = static_cast<std::uint16_t>(0x2400U | (source.next() & 0x83FFU));
      std::memcpy(tile.get() + at + 2 * i, &half, sizeof half);
    }
  }
  return tile;
}

/// Input rows in the form their kernels read, one after the other.
struct input_rows {
  aligned_bytes bytes;
  std::size_t stride = 0;
};

input_rows quantized(const kernel_table& kernels, const std::vector<float>& values, std::int32_t columns,
                     std::int32_t terms) {
  input_rows out;
  const std::int64_t blocks = columns / kBlockInputs;
  out.stride = static_cast<std::size_t>(blocks | 1) * sizeof(activation_block);
  if (terms == 2) out.stride = (pair_row_bytes(blocks) + kCacheLine - 1) / kCacheLine * kCacheLine;
  const std::size_t rows = values.size() / static_cast<std::size_t>(columns);
  out.bytes = allocate_aligned(rows * out.stride);
  TANDEM_ASSERT(out.bytes != nullptr);
  for (std::size_t row = 0; row < rows; ++row) {
    const float* from = values.data() + row * static_cast<std::size_t>(columns);
    auto* to = reinterpret_cast<activation_block*>(out.bytes.get() + row * out.stride);
    (terms == 2 ? kernels.quantize_row_pair : kernels.quantize_row)(from, columns, to);
  }
  return out;
}

constexpr float kUntouched = 12345.0F;

void release(const kernel_table& kernels) {
  if (kernels.release != nullptr) kernels.release();
}

std::vector<float> product(const kernel_table& kernels, packed_format format, matmul_task task) {
  std::vector<float> out(static_cast<std::size_t>(task.rows) * kTileOutputs, kUntouched);
  task.out = out.data();
  task.out_stride = kTileOutputs;
  kernels.matmul[static_cast<std::size_t>(format)](task);
  release(kernels);
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Fewer than a group, one, one and a short rest, one and a long rest, more than share one unpacking.
constexpr std::int32_t kCheckedRows[] = {1, 16, 20, 31, 150};
constexpr std::int32_t kMostCheckedRows = 150;

/// Rows for which the kernels differ, if any.
std::optional<std::int32_t> differing_rows(const kernel_table& trusted, const kernel_table& tried, packed_format format,
                                           std::int32_t terms) {
  constexpr std::int32_t kColumns = 19 * kBlockInputs;  // units and chunks that are not full
  number_source source;
  const aligned_bytes tile = random_tile(format, kColumns, source);
  const std::vector<float> values = random_floats(static_cast<std::size_t>(kMostCheckedRows) * kColumns, source);
  const input_rows input = quantized(trusted, values, kColumns, terms);
  for (const std::int32_t rows : kCheckedRows) {
    for (const std::int32_t outputs : {kTileOutputs, 11}) {
      const matmul_task task{
          tile.get(), kColumns / kBlockInputs, input.bytes.get(), input.stride, terms, rows, nullptr, kTileOutputs,
          outputs};
      if (!same_bits(product(trusted, format, task), product(tried, format, task))) return rows;
    }
  }
  return std::nullopt;
}

/// Rounded to bf16 in place; the bits are returned.
std::vector<std::uint16_t> round_all(const kernel_table& kernels, std::vector<float>& values, std::int32_t columns,
                                     std::int32_t stride) {
  const std::size_t rows = values.size() / static_cast<std::size_t>(columns);
  std::vector<std::uint16_t> bits(rows * static_cast<std::size_t>(stride));
  for (std::size_t row = 0; row < rows; ++row) {
    float* from = values.data() + row * static_cast<std::size_t>(columns);
    std::uint16_t* to = bits.data() + row * static_cast<std::size_t>(stride);
    kernels.round_row(from, columns, to);
    for (std::int32_t k = 0; k < columns; ++k) from[k] = model::bfloat16_to_float(to[k]);
  }
  return bits;
}

bool is_close(const std::vector<float>& out, const std::vector<float>& inputs, const std::vector<float>& weights,
              std::int32_t columns, std::int32_t outputs) {
  const std::size_t rows = out.size() / kTileOutputs;
  const std::vector<float> used(inputs.begin(),
                                inputs.begin() + static_cast<std::ptrdiff_t>(rows * static_cast<std::size_t>(columns)));
  std::vector<double> exact(rows * kTileOutputs);
  std::vector<double> magnitude(exact.size());
  reference::matmul_reference(used, weights, columns, exact, magnitude);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool is_output = static_cast<std::int32_t>(i % kTileOutputs) < outputs;
    if (!is_output && out[i] != kUntouched) return false;
    if (is_output && !(std::abs(out[i] - exact[i]) <= (columns + 8) * 0x1p-24 * magnitude[i])) return false;
  }
  return true;
}

std::optional<std::int32_t> wrong_bf16_rows(const kernel_table& trusted, const kernel_table& tried) {
  constexpr std::int32_t kColumns = 77;  // two full tiles, and one that is not
  constexpr std::int32_t kPairs = (kColumns + 1) / 2;
  constexpr std::int32_t kStride = 2 * kPairs;
  number_source source;
  std::vector<float> inputs = random_floats(static_cast<std::size_t>(kMostCheckedRows) * kColumns, source);
  std::vector<float> weights = random_floats(std::size_t{kTileOutputs} * kColumns, source);
  const std::vector<std::uint16_t> x = round_all(trusted, inputs, kColumns, kStride);
  const std::vector<std::uint16_t> w = round_all(trusted, weights, kColumns, kStride);
  const aligned_bytes tile = allocate_aligned(std::size_t{kPairs} * kCacheLine);
  TANDEM_ASSERT(tile != nullptr);
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    for (std::size_t n = 0; n < kTileOutputs; ++n) {
      std::memcpy(tile.get() + pair * kCacheLine + 4 * n, w.data() + n * kStride + 2 * pair, 4);
    }
  }
  for (const std::int32_t rows : kCheckedRows) {
    for (const std::int32_t outputs : {kTileOutputs, 11}) {
      const matmul_task task{
          tile.get(),   kPairs, reinterpret_cast<const std::byte*>(x.data()), 2 * kStride, 1, rows, nullptr,
          kTileOutputs, outputs};
      if (!is_close(product(tried, packed_format::bf16, task), inputs, weights, kColumns, outputs)) return rows;
    }
  }
  return std::nullopt;
}

double seconds_of(const kernel_table& kernels, packed_format format, const matmul_task& task, int calls) {
  const matmul_function kernel = kernels.matmul[static_cast<std::size_t>(format)];
  constexpr int kRuns = 4;  // the first warms up
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) kernel(task);
    release(kernels);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / calls);
  }
  return best;
}

}  // namespace

std::optional<table_difference> first_difference(const kernel_table& trusted, const kernel_table& tried) {
  for (std::size_t index = 0; index < kPackedFormats; ++index) {
    const auto format = static_cast<packed_format>(index);
    if (layout_of(format).input != activation_kind::int8) continue;
    if (trusted.matmul[index] == tried.matmul[index]) continue;
    for (const std::int32_t terms : {1, 2}) {
      if (const auto rows = differing_rows(trusted, tried, format, terms)) return table_difference{format, *rows};
    }
  }
  const auto bf16 = static_cast<std::size_t>(packed_format::bf16);
  if (trusted.matmul[bf16] == tried.matmul[bf16]) return std::nullopt;
  if (const auto rows = wrong_bf16_rows(trusted, tried)) return table_difference{packed_format::bf16, *rows};
  return std::nullopt;
}

std::string_view format_name(packed_format format) {
  constexpr std::string_view kNames[kPackedFormats] = {"Q4_0", "Q4_1", "Q4_K", "Q8_0", "Q5_1",
                                                       "Q5_K", "Q6_K", "bf16", "fp32"};
  return kNames[static_cast<std::size_t>(format)];
}

product_seconds time_products(const kernel_table& kernels, packed_format format) {
  constexpr std::int32_t kFew = 16;
  constexpr std::int32_t kMany = 512;
  constexpr std::int32_t kColumns = 512;
  number_source source;
  const aligned_bytes tile = random_tile(format, kColumns, source);
  const std::vector<float> values = random_floats(std::size_t{kMany} * kColumns, source);
  const input_rows input = quantized(kernels, values, kColumns, 1);
  std::vector<float> out(std::size_t{kMany} * kTileOutputs);
  matmul_task task{
      tile.get(),  kColumns / kBlockInputs, input.bytes.get(), input.stride, 1, kFew, out.data(), kTileOutputs,
      kTileOutputs};
  product_seconds seconds{};
  seconds.few_rows = seconds_of(kernels, format, task, kMany / kFew);
  task.rows = kMany;
  seconds.many_rows = seconds_of(kernels, format, task, 1);
  return seconds;
}

kernel_reach worthwhile(const product_seconds& vector, const product_seconds& tile) {
  if (tile.many_rows >= vector.many_rows) return kernel_reach::none;
  return tile.few_rows < vector.few_rows ? kernel_reach::few_rows : kernel_reach::many_rows;
}

}  // namespace tandem::gpu::host

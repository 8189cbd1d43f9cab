/// Formulas: ggml's quantisation formats as the GGUF specification describes them. Every product and sum is one fp32
/// operation in the format's own order, so that values agree bit for bit with other readers.

#include <cstdint>
#include <cstring>

#include "core/assert.hpp"
#include "model/half.hpp"
#include "model/model.hpp"

namespace tandem::model {
namespace {

using bytes = const std::uint8_t*;

std::uint16_t load_u16(bytes at) {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint32_t load_u32(bytes at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float load_half(bytes at) {
  return half_to_float(load_u16(at));
}

void dequantize_f32(bytes in, float* out) {
  std::memcpy(out, in, sizeof(float));
}
void dequantize_f16(bytes in, float* out) {
  *out = load_half(in);
}
void dequantize_bf16(bytes in, float* out) {
  *out = bfloat16_to_float(load_u16(in));
}

// scale, 16 bytes of nibbles: value j in the low one of byte j, value j+16 in the high one.
void dequantize_q4_0(bytes in, float* out) {
  const float scale = load_half(in);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((in[2 + j] & 0xF) - 8) * scale;
    out[j + 16] = static_cast<float>((in[2 + j] >> 4) - 8) * scale;
  }
}

// scale, minimum, nibbles as above.
void dequantize_q4_1(bytes in, float* out) {
  const float scale = load_half(in);
  const float minimum = load_half(in + 2);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(in[4 + j] & 0xF) * scale + minimum;
    out[j + 16] = static_cast<float>(in[4 + j] >> 4) * scale + minimum;
  }
}

// Value j's fifth bit is bit j of a 32-bit word.
int five_bits(int nibble, std::uint32_t high_bits, int j) {
  return nibble | static_cast<int>(((high_bits >> j) & 1U) << 4);
}

void dequantize_q5_0(bytes in, float* out) {
  const float scale = load_half(in);
  const std::uint32_t high_bits = load_u32(in + 2);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(five_bits(in[6 + j] & 0xF, high_bits, j) - 16) * scale;
    out[j + 16] = static_cast<float>(five_bits(in[6 + j] >> 4, high_bits, j + 16) - 16) * scale;
  }
}

void dequantize_q5_1(bytes in, float* out) {
  const float scale = load_half(in);
  const float minimum = load_half(in + 2);
  const std::uint32_t high_bits = load_u32(in + 4);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(five_bits(in[8 + j] & 0xF, high_bits, j)) * scale + minimum;
    out[j + 16] = static_cast<float>(five_bits(in[8 + j] >> 4, high_bits, j + 16)) * scale + minimum;
  }
}

void dequantize_q8_0(bytes in, float* out) {
  const float scale = load_half(in);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(static_cast<std::int8_t>(in[2 + j])) * scale;
}

struct scale_and_minimum {
  int scale = 0;
  int minimum = 0;
};

// Q4_K and Q5_K: eight 6-bit scales and eight 6-bit minima in 12 bytes.
scale_and_minimum unpack_scale(bytes scales, int group) {
  if (group < 4) return {scales[group] & 63, scales[group + 4] & 63};
  return {(scales[group + 4] & 0xF) | ((scales[group - 4] >> 6) << 4),
          (scales[group + 4] >> 4) | ((scales[group] >> 6) << 4)};
}

// scale, scale of minima, 12 bytes of group scales, 128 bytes of nibbles: groups 2g and 2g+1 share 32 bytes.
void dequantize_q4_k(bytes in, float* out) {
  const float scale = load_half(in);
  const float minimum = load_half(in + 2);
  bytes nibbles = in + 16;
  for (int group = 0; group < 8; ++group) {
    const scale_and_minimum of_group = unpack_scale(in + 4, group);
    const float group_scale = scale * static_cast<float>(of_group.scale);
    const float group_minimum = minimum * static_cast<float>(of_group.minimum);
    bytes pair = nibbles + group / 2 * 32;
    const int shift = (group % 2) * 4;
    for (int j = 0; j < 32; ++j) {
      out[group * 32 + j] = group_scale * static_cast<float>((pair[j] >> shift) & 0xF) - group_minimum;
    }
  }
}

// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit `group` of byte j.
void dequantize_q5_k(bytes in, float* out) {
  const float scale = load_half(in);
  const float minimum = load_half(in + 2);
  bytes high = in + 16;
  bytes nibbles = in + 48;
  for (int group = 0; group < 8; ++group) {
    const scale_and_minimum of_group = unpack_scale(in + 4, group);
    const float group_scale = scale * static_cast<float>(of_group.scale);
    const float group_minimum = minimum * static_cast<float>(of_group.minimum);
    bytes pair = nibbles + group / 2 * 32;
    const int shift = (group % 2) * 4;
    for (int j = 0; j < 32; ++j) {
      const int value = ((pair[j] >> shift) & 0xF) | (((high[j] >> group) & 1) << 4);
      out[group * 32 + j] = group_scale * static_cast<float>(value) - group_minimum;
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, scale. Two halves of 128 values; in a half,
// quarter q takes nibbles from byte (q%2)*32 + j, low ones for q < 2, and bits 2q of high byte j.
void dequantize_q6_k(bytes in, float* out) {
  const float scale = load_half(in + 208);
  for (int value = 0; value < 256; ++value) {
    const int half = value / 128;
    const int quarter = value % 128 / 32;
    const int j = value % 32;
    const int low = (in[half * 64 + quarter % 2 * 32 + j] >> (quarter / 2 * 4)) & 0xF;
    const int high = (in[128 + half * 32 + j] >> (quarter * 2)) & 3;
    const auto group_scale = static_cast<std::int8_t>(in[192 + value / 16]);
    out[value] = scale * static_cast<float>(group_scale) * static_cast<float>((low | (high << 4)) - 32);
  }
}

template <void (*Block)(bytes, float*)>
void dequantize_blocks(bytes in, const kind_traits& kind, std::int64_t columns, float* out) {
  for (std::int64_t column = 0; column < columns; column += kind.block_elements) {
    Block(in, out + column);
    in += kind.block_bytes;
  }
}

using row_function = void (*)(bytes, const kind_traits&, std::int64_t, float*);

row_function function_for(tensor_kind kind) {
  switch (kind) {
    case tensor_kind::f32:
      return dequantize_blocks<dequantize_f32>;
    case tensor_kind::f16:
      return dequantize_blocks<dequantize_f16>;
    case tensor_kind::bf16:
      return dequantize_blocks<dequantize_bf16>;
    case tensor_kind::q4_0:
      return dequantize_blocks<dequantize_q4_0>;
    case tensor_kind::q4_1:
      return dequantize_blocks<dequantize_q4_1>;
    case tensor_kind::q5_0:
      return dequantize_blocks<dequantize_q5_0>;
    case tensor_kind::q5_1:
      return dequantize_blocks<dequantize_q5_1>;
    case tensor_kind::q8_0:
      return dequantize_blocks<dequantize_q8_0>;
    case tensor_kind::q4_k:
      return dequantize_blocks<dequantize_q4_k>;
    case tensor_kind::q5_k:
      return dequantize_blocks<dequantize_q5_k>;
    case tensor_kind::q6_k:
      return dequantize_blocks<dequantize_q6_k>;
  }
  return nullptr;
}

}  // namespace

void dequantize_row(const tensor& weight, std::int64_t row, float* out) {
  TANDEM_ASSERT(row >= 0 && row < weight.rows);
  const kind_traits& kind = traits(weight.kind);
  const std::int64_t row_bytes = weight.columns / kind.block_elements * kind.block_bytes;
  TANDEM_ASSERT(static_cast<std::uint64_t>((row + 1) * row_bytes) <= weight.data.size());
  const row_function dequantize = function_for(weight.kind);
  TANDEM_ASSERT(dequantize != nullptr);
  dequantize(reinterpret_cast<bytes>(weight.data.data()) + row * row_bytes, kind, weight.columns, out);
}

}  // namespace tandem::model

#pragma once
/// quantize_row and round_row, for every instruction set: plain loops that the compiler turns into the set's vectors.
///
/// Computes:   int8: per 32 inputs scale = max|x| / 127, quants = x · (127 / max|x|), half to even; bf16: nearest even.
/// Shapes and layout: one row in, one row out, see activation_block.
/// Mapping:    32 inputs at a time.
/// Requires:   the default rounding mode.
/// Cost:       a few operations per input.
/// Accuracy:   integers and single float operations only: the same bits on every instruction set. A block with a NaN or
///             infinity becomes scale NaN; a block with max|x| < 1e-35 becomes zero.
/// Tested by:  tests/gpu/kernels.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/host/packed_layout.hpp"

namespace tandem::gpu::host {
namespace {

/// Largest |x| of the block as bits: they order like the numbers, infinity and NaN on top.
inline std::uint32_t largest_magnitude(const float* x) {
  std::uint32_t bits[kBlockInputs];
  std::memcpy(bits, x, sizeof bits);
  std::uint32_t largest = 0;
  for (int k = 0; k < kBlockInputs; ++k) {
    const std::uint32_t magnitude = bits[k] & 0x7FFFFFFFU;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

/// Sets quants and sums for finite inputs scaled to ±127.
inline void fill_quants(const float* x, float inverse, activation_block& out) {
  constexpr float kRounder =
      12582912.0F;  // 1.5 · 2^23: adding it rounds half to even and leaves the integer in the bits
  constexpr std::int32_t kRounderBits = 0x4B400000;
  float shifted[kBlockInputs];
  for (int k = 0; k < kBlockInputs; ++k) shifted[k] = x[k] * inverse + kRounder;
  std::int32_t values[kBlockInputs];
  std::memcpy(values, shifted, sizeof values);
  std::int32_t low = 0;
  std::int32_t high = 0;
  for (int k = 0; k < kBlockInputs; ++k) values[k] -= kRounderBits;
  for (int k = 0; k < 16; ++k) low += values[k];
  for (int k = 16; k < kBlockInputs; ++k) high += values[k];
  for (int k = 0; k < kBlockInputs; ++k) out.quants[k] = static_cast<std::int8_t>(values[k]);
  out.negative_low = -low;
  out.negative_sum = -(low + high);
}

/// One block; NaN and infinity make its scale NaN.
inline void quantize_block(const float* input, activation_block& out) {
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  constexpr float kSmallest = 1e-35F;  // below it 127 / max could overflow
  const std::uint32_t bits = largest_magnitude(input);
  float largest = 0;
  std::memcpy(&largest, &bits, sizeof largest);
  std::memset(&out, 0, sizeof out);
  if (bits >= kInfinity) {
    const std::uint32_t quiet_nan = 0x7FC00000U;
    std::memcpy(&out.scale, &quiet_nan, sizeof quiet_nan);
    out.scaled_sum = out.scale;
  } else if (largest >= kSmallest) {
    out.scale = largest / 127.0F;
    fill_quants(input, 127.0F / largest, out);
    out.scaled_sum = out.scale * static_cast<float>(-out.negative_sum);
  }
}

inline void quantize_row(const float* input, std::int32_t columns, activation_block* out) {
  for (std::int32_t k = 0; k < columns; k += kBlockInputs, ++out) quantize_block(input + k, *out);
}

/// Mean square of the row, summed in 16 fixed lanes so that every instruction set gets the same bits.
inline float mean_square(const float* input, std::int32_t columns) {
  constexpr int kSums = 16;
  float sums[kSums] = {};
  for (std::int32_t k = 0; k < columns; k += kSums) {
    for (int i = 0; i < kSums; ++i) sums[i] += input[k + i] * input[k + i];
  }
  for (int width = kSums / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0] / static_cast<float>(columns);
}

/// What rounding to `first` left, with a scale of its own.
inline void quantize_rest(const float* input, const activation_block& first, activation_block& rest) {
  float left[kBlockInputs];
  for (int i = 0; i < kBlockInputs; ++i) left[i] = input[i] - first.scale * static_cast<float>(first.quants[i]);
  quantize_block(left, rest);
}

/// A block whose largest value stands out loses most to rounding, because that value sets its scale: only such a block
/// gets a second term. A block with NaN or infinity always does, so its NaN scale stays what it is in both terms.
inline void quantize_row_pair(const float* input, std::int32_t columns, activation_block* out) {
  constexpr float kStandsOut = 4.0F * 4.0F / (127.0F * 127.0F);  // (4 × root mean square / 127)², docs/decisions/0011
  const std::int32_t blocks = columns / kBlockInputs;
  activation_block* rest = out + blocks;
  auto* kept = reinterpret_cast<std::uint64_t*>(rest + blocks);
  std::memset(kept, 0, static_cast<std::size_t>(second_term_words(blocks)) * sizeof *kept);
  const float limit = kStandsOut * mean_square(input, columns);
  for (std::int32_t b = 0; b < blocks; ++b) {
    const float* x = input + std::int64_t{b} * kBlockInputs;
    quantize_block(x, out[b]);
    if (out[b].scale * out[b].scale <= limit) {
      std::memset(&rest[b], 0, sizeof rest[b]);
      continue;
    }
    quantize_rest(x, out[b], rest[b]);
    kept[b / 64] |= std::uint64_t{1} << (b % 64);
  }
}

/// One input as the upper half of a float, to nearest even; NaN stays NaN.
inline std::uint32_t rounded_bits(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return is_nan ? (bits >> 16) | 0x40U : rounded;
}

inline void round_row(const float* input, std::int32_t columns, std::uint16_t* out) {
  for (std::int32_t k = 0; k < columns; ++k) out[k] = static_cast<std::uint16_t>(rounded_bits(input[k]));
  if (columns % 2 != 0) out[columns] = 0;
}

/// One block of a row as 16 pairs of bf16, inputs j and 16 + j.
inline void round_pairs(const float* input, std::uint32_t* pairs) {
  for (int j = 0; j < 16; ++j) pairs[j] = rounded_bits(input[j]) | rounded_bits(input[16 + j]) << 16;
}

inline void round_row_pairs(const float* input, std::int32_t columns, std::uint32_t* out) {
  std::int32_t k = 0;
  for (; k + kBlockInputs <= columns; k += kBlockInputs, out += 16) round_pairs(input + k, out);
  if (k == columns) return;
  float last[kBlockInputs] = {};
  std::memcpy(last, input + k, static_cast<std::size_t>(columns - k) * sizeof(float));
  round_pairs(last, out);
}

inline void interleave_pairs(const std::uint32_t* pairs, std::int64_t stride, std::int32_t rows, std::int64_t blocks,
                             std::uint32_t* out) {
  for (std::int64_t pair = 0; pair < 16 * blocks; ++pair)
    for (std::int32_t row = 0; row < rows; ++row) out[pair * rows + row] = pairs[row * stride + pair];
}

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// Rounding to the upper half of an fp32; the ways back are in model/half.hpp.

#include <bit>
#include <cstdint>

namespace tandem::gpu::host {

/// Round to nearest even; NaN stays NaN (quiet), infinity stays infinity.
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace tandem::gpu::host

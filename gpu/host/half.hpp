#pragma once
/// The two 16-bit floats as bit patterns. Plain integer arithmetic: the same result on every machine.

#include <bit>
#include <cstdint>

namespace tandem::gpu::host {

/// IEEE 754 binary16, denormals, infinities and NaN included.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t exponent = (half >> 10) & 31U;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // A denormal of binary16 is a normal binary32: shift its leading one to the implicit place.
  const auto shift = static_cast<std::uint32_t>(std::countl_zero(mantissa)) - 21U;
  return std::bit_cast<float>(sign | ((113U - shift) << 23) | ((mantissa << (shift + 13U)) & 0x7FFFFFU));
}

/// Round to nearest even; NaN stays NaN (quiet), infinity stays infinity.
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

inline float bf16_to_float(std::uint16_t value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

}  // namespace tandem::gpu::host

#pragma once
/// Largest magnitude of some numbers.

#include <bit>
#include <cstdint>

namespace tandem::gpu::host {

/// Not finite when a number is not: without the sign, floats, infinity and NaN order as their bits do.
inline float largest_magnitude(const float* values, std::int32_t count) {
  std::uint32_t largest = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFU;
    largest = magnitude > largest ? magnitude : largest;
  }
  return std::bit_cast<float>(largest);
}

}  // namespace tandem::gpu::host

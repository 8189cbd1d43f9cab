#include "gpu/host/quantised_vector.hpp"

#include <limits>

#include "gpu/host/magnitude.hpp"

namespace tandem::gpu::host {
namespace {

constexpr float kLevels = 127.0F;
constexpr float kSmallestLargest = 1e-30F;  // below it 127 / largest would leave fp32, or the scale would be flushed
constexpr float kRounding = 12582912.0F;    // 1.5 · 2^23: adding it rounds to an integer, ties to even

}  // namespace

float quantise_vector(const float* from, std::int32_t count, std::int8_t* to, std::int64_t to_stride) {
  const float largest = largest_magnitude(from, count);
  const bool finite = largest <= std::numeric_limits<float>::max();
  if (!finite || largest < kSmallestLargest) {
    for (std::int32_t i = 0; i < count; ++i) to[i * to_stride] = 0;
    return finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
  const float inverse = kLevels / largest;
  for (std::int32_t i = 0; i < count; ++i) {
    const float rounded = (from[i] * inverse + kRounding) - kRounding;
    to[i * to_stride] = static_cast<std::int8_t>(static_cast<std::int32_t>(rounded));
  }
  return largest / kLevels;
}

}  // namespace tandem::gpu::host

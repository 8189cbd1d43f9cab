#include "gpu/host/weight_rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gpu/host/magnitude.hpp"
#include "gpu/host/packed_layout.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::uint16_t kHalfNan = 0x7E00;
constexpr float kLargestHalf = 65504.0F;
constexpr float kSmallestNormalHalf = 0x1p-14F;
constexpr float kMostQuants = 127.0F;
constexpr std::uint32_t kZeroQuant = 128;      // of the byte_half layout
constexpr float kToWholeNumbers = 0x1.8p23F;   // x + this has the nearest whole number (ties to even) in its low bits
constexpr std::uint32_t kHalfRebias = 112U << 10;

/// The smallest fp16 number that is at least `least` ≥ 0; NaN when there is none.
std::uint16_t half_at_least(float least) {
  if (!(least <= kLargestHalf)) return kHalfNan;
  if (least < kSmallestNormalHalf) return static_cast<std::uint16_t>(std::ceil(least * 0x1p24F));
  return static_cast<std::uint16_t>(((std::bit_cast<std::uint32_t>(least) + 0x1FFFU) >> 13) - kHalfRebias);
}

}  // namespace

source_block round_block(const float* values) {
  source_block block{};
  block.scale = half_at_least(largest_magnitude(values, kBlockInputs) / kMostQuants);
  const float scale = model::half_to_float(block.scale);
  if (!(scale > 0.0F)) {  // all zero, or poisoned
    std::fill_n(block.quants, kBlockInputs, static_cast<std::uint8_t>(kZeroQuant));
    return block;
  }
  for (int j = 0; j < kBlockInputs; ++j) {
    const auto whole = std::bit_cast<std::uint32_t>(values[j] / scale + kToWholeNumbers);
    block.quants[j] = static_cast<std::uint8_t>(whole + kZeroQuant);
  }
  return block;
}

}  // namespace tandem::gpu::host

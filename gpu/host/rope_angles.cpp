#include "gpu/host/rope_angles.hpp"

#include <cmath>

#include "core/assert.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kPositionsPerPage = 256;

}  // namespace

rope_angles::rope_angles(const model::rope_description& rope, std::int32_t max_positions)
    : table_(model::rope_frequencies(rope)), interleaved_(rope.interleaved), max_positions_(max_positions) {
  pages_.reserve(static_cast<std::size_t>(max_positions / kPositionsPerPage + 1));
}

void rope_angles::reach(std::int32_t end) {
  TANDEM_ASSERT(end <= max_positions_);
  while (static_cast<std::int32_t>(pages_.size()) * kPositionsPerPage < end) {
    auto page = std::make_unique<float[]>(static_cast<std::size_t>(kPositionsPerPage) * 2 * table_.frequencies.size());
    fill_page(page.get(), static_cast<std::int32_t>(pages_.size()) * kPositionsPerPage);
    pages_.push_back(std::move(page));
  }
}

void rope_angles::fill_page(float* page, std::int32_t first_position) const {
  const auto count = table_.frequencies.size();
  for (std::int32_t i = 0; i < kPositionsPerPage; ++i) {
    float* cosines = page + static_cast<std::size_t>(i) * 2 * count;
    for (std::size_t pair = 0; pair < count; ++pair) {
      const double angle = (first_position + i) * table_.frequencies[pair];
      cosines[pair] = static_cast<float>(std::cos(angle) * table_.magnitude);
      cosines[count + pair] = static_cast<float>(std::sin(angle) * table_.magnitude);
    }
  }
}

const float* rope_angles::cosines(std::int32_t position) const {
  const auto page = static_cast<std::size_t>(position / kPositionsPerPage);
  TANDEM_ASSERT(position >= 0 && page < pages_.size());
  return pages_[page].get() + static_cast<std::size_t>(position % kPositionsPerPage) * 2 * table_.frequencies.size();
}

}  // namespace tandem::gpu::host

#include "gpu/host/head_features.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace tandem::gpu::host {

head_features::head_features(std::int32_t slots, std::int32_t width)
    : width_(width),
      slots_(static_cast<std::size_t>(slots)),
      values_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(width)) {}

std::size_t head_features::at(slot_id slot) const {
  TANDEM_ASSERT(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size());
  return static_cast<std::size_t>(slot);
}

void head_features::keep(slot_id slot, std::uint32_t slot_gen, std::int32_t position, const float* feature) {
  const std::size_t index = at(slot);
  slots_[index] = {slot_gen, position};
  std::copy_n(feature, width_, values_.data() + index * static_cast<std::size_t>(width_));
}

const float* head_features::find(slot_id slot, std::uint32_t slot_gen, std::int32_t position) const {
  const std::size_t index = at(slot);
  if (slots_[index].slot_gen != slot_gen || slots_[index].position != position) return nullptr;
  return values_.data() + index * static_cast<std::size_t>(width_);
}

}  // namespace tandem::gpu::host

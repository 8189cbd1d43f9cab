#pragma once
/// What a draft head keeps of the target's hidden states between steps: one feature per slot. Owner: a head.

#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace tandem::gpu::host {

class head_features {
 public:
  head_features(std::int32_t slots, std::int32_t width);

  /// The feature (`width` floats) of the slot's row at `position`, which replaces the one before.
  void keep(slot_id slot, std::uint32_t slot_gen, std::int32_t position, const float* feature);
  /// Null unless exactly that row of that life was kept last.
  const float* find(slot_id slot, std::uint32_t slot_gen, std::int32_t position) const;
  std::uint64_t bytes() const { return values_.size() * sizeof(float); }

 private:
  struct kept {
    std::uint32_t slot_gen = 0;
    std::int32_t position = -1;
  };
  std::size_t at(slot_id slot) const;

  std::int32_t width_;
  std::vector<kept> slots_;
  std::vector<float> values_;  // slots × width
};

}  // namespace tandem::gpu::host

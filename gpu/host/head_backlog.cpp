#include "gpu/host/head_backlog.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace tandem::gpu::host {

head_backlog::head_backlog(std::int32_t slots, std::int32_t width, std::int32_t most_rows)
    : width_(width),
      most_rows_(std::min(most_rows, limits::kMaxPutOffRows)),
      slots_(static_cast<std::size_t>(slots)),
      raw_(untouched_floats(std::int64_t{slots} * limits::kMaxPutOffRows, width)) {}

bool head_backlog::has_room(slot_id slot, std::uint32_t slot_gen, std::int32_t first_position, std::int32_t count) {
  rows& held = slots_[static_cast<std::size_t>(slot)];
  const auto end = held.first_position + static_cast<std::int32_t>(held.tokens.size());
  const bool goes_on = held.slot_gen == slot_gen && held.first_position <= first_position && first_position <= end;
  if (!goes_on) held = {slot_gen, first_position, {}};
  held.tokens.resize(static_cast<std::size_t>(first_position - held.first_position));
  return first_position - held.first_position + count <= most_rows_;
}

float* head_backlog::add(slot_id slot, token_id token) {
  rows& held = slots_[static_cast<std::size_t>(slot)];
  float* to = raw_.get() + place(slot, held.tokens.size());
  held.tokens.push_back(token);
  return to;
}

head_backlog::waiting head_backlog::of(slot_id slot, std::uint32_t slot_gen) const {
  const rows& held = slots_[static_cast<std::size_t>(slot)];
  if (held.slot_gen != slot_gen) return {};
  return {held.first_position, held.tokens, raw_.get() + place(slot, 0)};
}

void head_backlog::clear(slot_id slot) {
  slots_[static_cast<std::size_t>(slot)].tokens.clear();
}

std::int64_t head_backlog::place(slot_id slot, std::size_t row) const {
  TANDEM_ASSERT(row < static_cast<std::size_t>(limits::kMaxPutOffRows));
  return (std::int64_t{slot} * limits::kMaxPutOffRows + static_cast<std::int64_t>(row)) * width_;
}

std::uint64_t head_backlog::bytes() const {
  return slots_.size() * limits::kMaxPutOffRows * static_cast<std::uint64_t>(width_) * sizeof(float);
}

}  // namespace tandem::gpu::host

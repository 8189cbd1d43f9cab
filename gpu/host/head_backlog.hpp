#pragma once
/// Committed rows that a head has not taken in yet, a few per slot, with what the target left of them. Owner: a head.

#include <cstdint>
#include <span>
#include <vector>

#include "config/limits.hpp"
#include "core/ids.hpp"
#include "gpu/host/layer_executor.hpp"

namespace tandem::gpu::host {

class head_backlog {
 public:
  /// Consecutive rows of one life of a slot; `raw`: one row of `width` floats each.
  struct waiting {
    std::int32_t first_position = 0;
    std::span<const token_id> tokens;
    const float* raw = nullptr;
  };

  /// `most_rows` of a slot, at most limits::kMaxPutOffRows: no more than can be taken in at once.
  head_backlog(std::int32_t slots, std::int32_t width, std::int32_t most_rows = limits::kMaxPutOffRows);

  /// Whether `count` rows from `first_position` on may wait too, at most `most_rows` in all. Rows of an
  /// earlier life, from that position on, or before a gap are forgotten.
  bool has_room(slot_id slot, std::uint32_t slot_gen, std::int32_t first_position, std::int32_t count);
  /// Where to put what the target left of the row behind those that wait.
  float* add(slot_id slot, token_id token);
  /// Empty when none wait. Valid until the slot's rows change.
  waiting of(slot_id slot, std::uint32_t slot_gen) const;
  void clear(slot_id slot);
  std::uint64_t bytes() const;

 private:
  struct rows {
    std::uint32_t slot_gen = 0;
    std::int32_t first_position = 0;
    std::vector<token_id> tokens;
  };
  std::int64_t place(slot_id slot, std::size_t row) const;

  std::int32_t width_;
  std::int32_t most_rows_;
  std::vector<rows> slots_;
  float_buffer raw_;  // slots × kMaxPutOffRows × width
};

}  // namespace tandem::gpu::host

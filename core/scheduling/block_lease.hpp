#pragma once
/// Blocks the scheduler holds ahead of need, so that no step waits for the allocator. Owner: scheduler.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/messages.hpp"

namespace tandem {

class block_lease {
 public:
  explicit block_lease(std::int32_t num_blocks) : num_blocks_(num_blocks), free_estimate_(num_blocks) {}

  std::int32_t size() const { return static_cast<std::int32_t>(blocks_.size()); }
  bool pending() const { return pending_; }
  /// The pool gave less than was asked for and nothing was released since.
  bool exhausted() const { return exhausted_ && !pending_; }
  /// Blocks that could be had without preempting anybody; an estimate between two answers.
  std::int32_t obtainable() const { return size() + free_estimate_; }

  block_id take() {
    TANDEM_ASSERT(!blocks_.empty());
    const block_id block = blocks_.back();
    blocks_.pop_back();
    return block;
  }
  void note_unmet(std::int32_t blocks) { unmet_ += blocks; }
  void note_released(std::int32_t blocks) {
    free_estimate_ = std::min(num_blocks_, free_estimate_ + blocks);
    if (blocks == 0) return;
    exhausted_ = false;
    released_since_asked_ = true;
  }
  void note_pinned(std::int32_t blocks) { free_estimate_ = std::max(0, free_estimate_ - blocks); }

  /// Asks for more when the lease is below half of `target` or somebody went without.
  std::optional<lease_blocks> request(std::int32_t target, std::uint32_t pool_gen) {
    const std::int32_t unmet = std::exchange(unmet_, 0);
    if (pending_ || exhausted_) return std::nullopt;
    const std::int32_t want = std::max(target - size(), unmet);
    if (want <= 0 || (unmet == 0 && size() >= (target + 1) / 2)) return std::nullopt;
    pending_ = true;
    released_since_asked_ = false;
    asked_ = want;
    return lease_blocks{want, pool_gen};
  }
  void answered(const blocks_leased& message) {
    pending_ = false;
    // What was released behind the request may not have been counted: ask again before preempting for it.
    exhausted_ = static_cast<std::int32_t>(message.blocks.size()) < asked_ && !released_since_asked_;
    free_estimate_ = message.still_free;
    blocks_.insert(blocks_.end(), message.blocks.begin(), message.blocks.end());
  }
  /// The allocator died: what it was asked for will not come.
  void forget_request() {
    pending_ = false;
    exhausted_ = false;
  }
  const std::vector<block_id>& blocks() const { return blocks_; }

 private:
  std::int32_t num_blocks_;
  std::vector<block_id> blocks_;
  std::int32_t free_estimate_;
  std::int32_t unmet_ = 0;
  std::int32_t asked_ = 0;
  bool pending_ = false;
  bool exhausted_ = false;
  bool released_since_asked_ = false;
};

}  // namespace tandem

#pragma once
/// How many holds sequences have on each block. Choices, beams and prefix hits hold the same blocks, and a block counts
/// once however many hold it. Owner: scheduler.

#include <cstdint>
#include <span>
#include <vector>

#include "core/assert.hpp"
#include "core/ids.hpp"

namespace tandem {

class block_holds {
 public:
  explicit block_holds(std::int32_t num_blocks) : holds_(static_cast<std::size_t>(num_blocks)) {}

  /// One more hold on each; = how many of them nobody held before.
  std::int32_t add(std::span<const block_id> blocks) {
    std::int32_t fresh = 0;
    for (const block_id block : blocks) fresh += of(block)++ == 0 ? 1 : 0;
    distinct_ += fresh;
    return fresh;
  }
  /// One hold less on each; = how many of them nobody holds any more.
  std::int32_t drop(std::span<const block_id> blocks) {
    std::int32_t freed = 0;
    for (const block_id block : blocks) {
      TANDEM_ASSERT(of(block) > 0);
      freed += --of(block) == 0 ? 1 : 0;
    }
    distinct_ -= freed;
    return freed;
  }
  /// Blocks that somebody holds.
  std::int32_t distinct() const { return distinct_; }
  bool operator==(const block_holds&) const = default;

 private:
  std::int32_t& of(block_id block) {
    TANDEM_ASSERT(block >= 0 && static_cast<std::size_t>(block) < holds_.size());
    return holds_[static_cast<std::size_t>(block)];
  }

  std::vector<std::int32_t> holds_;  // by block
  std::int32_t distinct_ = 0;
};

}  // namespace tandem

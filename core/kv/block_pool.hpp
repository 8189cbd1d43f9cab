#pragma once
/// Which blocks are free, held or cached, and in which order cached ones go. Knows nothing of their contents.
/// Every operation is O(1). Internal to core/kv.

#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace tandem {

class block_pool {
 public:
  explicit block_pool(std::int32_t num_blocks);

  /// A free block, now held once; kNoBlock when there is none.
  block_id take_free();
  /// The least recently used cached block, now held once; kNoBlock when there is none.
  block_id take_oldest_cached();
  /// One more hold on a held or cached block.
  void pin(block_id block);
  /// One hold less. At none the block is cached (most recently used) when `keep`, else free. True when that happened.
  bool unpin(block_id block, bool keep);
  /// One more hold on a block in any state: for rebuilding after a restart.
  void adopt(block_id block);

  std::int32_t holds(block_id block) const { return at(block).holds; }
  bool is_cached(block_id block) const { return at(block).cached; }
  bool contains(block_id block) const { return block >= 0 && static_cast<std::size_t>(block) < slots_.size(); }
  std::int32_t size() const { return static_cast<std::int32_t>(slots_.size()); }
  std::int32_t free_count() const { return free_; }
  std::int32_t held_count() const { return held_; }
  std::int32_t cached_count() const { return cached_; }
  /// Both lists against the states, O(blocks).
  void check() const;

 private:
  // A block is linked into the free list or the cached list, or into none while it is held.
  struct slot {
    std::int32_t holds = 0;
    bool cached = false;
    block_id previous = kNoBlock;
    block_id next = kNoBlock;
  };
  struct list {
    block_id first = kNoBlock;
    block_id last = kNoBlock;
  };
  slot& at(block_id block);
  const slot& at(block_id block) const;
  void append(list& to, block_id block);
  void prepend(list& to, block_id block);
  void unlink(list& from, block_id block);
  std::int32_t check_list(const list& blocks, bool cached) const;

  std::vector<slot> slots_;
  list free_list_;    // last freed first: its memory is already resident
  list cached_list_;  // least recently used first
  std::int32_t free_ = 0;
  std::int32_t held_ = 0;
  std::int32_t cached_ = 0;
};

}  // namespace tandem

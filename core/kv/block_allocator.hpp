#pragma once
/// The block pool and the prefix index: decisions of the kv_allocator, without the actor. Owner: kv_allocator.
///
/// Every block is in exactly one state: free, held (leased or used: reference count > 0), or cached (count 0, findable
/// by its tokens, evicted least recently used first). free + held + cached = all, asserted after every call.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/messages.hpp"

namespace tandem {

class block_allocator {
 public:
  struct options {
    std::int32_t num_blocks = 0;
    std::int32_t block_size = 16;
    bool prefix_caching = true;
    /// Replaces the content hash in tests, to force collisions; null = the real one.
    std::uint64_t (*hash_for_test)(std::uint64_t parent_hash, std::span<const token_id> tokens) = nullptr;
  };
  struct counts {
    std::int32_t free = 0;
    std::int32_t held = 0;
    std::int32_t cached = 0;
  };

  explicit block_allocator(options opts, std::uint32_t pool_gen = 1);
  ~block_allocator();

  /// Up to `want` blocks with count 1 each, evicting cached ones (LRU) when no free ones are left.
  blocks_leased lease(const lease_blocks& request);
  /// Longest chain of cached or held blocks whose tokens equal the request's (compared on a hash match), pinned.
  prefix_matched match(const match_prefix& request);
  /// Ignored when pool_gen is not ours, when caching is off, when the block is already findable or the same content
  /// already is under another block. A later publish of the same block with draft_valid upgrades it.
  void publish(const publish_blocks& request);
  /// Count + 1 for each block; all of them are held. Old pool_gen: ignored.
  void share(const share_blocks& request);
  /// Count - 1 for each block; at 0 findable blocks become cached (most recent), others free. Old pool_gen: ignored.
  void release(const release_blocks& request);
  /// After a restart: everything but `held` is free, nothing is findable.
  void adopt(const adopt_blocks& request);

  counts count() const;
  std::uint32_t pool_gen() const;
  /// All invariants of the pool, in O(blocks): for tests and the simulation.
  void check() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace tandem

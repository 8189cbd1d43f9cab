#pragma once
/// The block allocator's contract with maps and lists, for comparison: exact contents as keys, no hashes.

#include <list>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/kv/block_allocator.hpp"

namespace tandem::testing {

class naive_allocator {
 public:
  explicit naive_allocator(std::int32_t num_blocks);

  /// Repeats a lease; false when a leased block was neither free nor, with none free, the least recently used.
  bool leased(const blocks_leased& actual, std::int32_t want);
  prefix_matched match(const match_prefix& request, std::int32_t block_size);
  void publish(const publish_blocks::entry& entry);
  void share(const std::vector<block_id>& blocks);
  void release(const std::vector<block_id>& blocks);
  block_allocator::counts count() const;

 private:
  using key = std::tuple<std::uint64_t, std::uint64_t, std::vector<token_id>>;  // parent's content, salt, tokens
  struct block {
    std::int32_t holds = 0;
    std::uint64_t content = 0;
    key place;
    bool draft_valid = false;
  };
  bool findable(block_id id) const;

  std::vector<block> blocks_;
  std::set<block_id> free_;
  std::list<block_id> cached_;
  std::map<key, block_id> index_;
  std::uint64_t contents_ = 0;
};

}  // namespace tandem::testing

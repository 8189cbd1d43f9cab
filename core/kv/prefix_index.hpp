#pragma once
/// Finds blocks by what they hold: a block's tokens and everything before them. Internal to core/kv.
///
/// Contents, not blocks, form the chains: each published content gets a number that is never used again, and a child
/// names its parent's content. A block that was evicted and filled anew is another content, so an old child can become
/// unreachable but never be found behind the wrong prefix.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ids.hpp"

namespace tandem {

using content_id = std::uint64_t;
inline constexpr content_id kNoContent = 0;

class prefix_index {
 public:
  using tokens_ptr = std::shared_ptr<const std::vector<token_id>>;
  using hash_function = std::uint64_t (*)(std::uint64_t parent_hash, std::span<const token_id> tokens);

  /// What a block's own tokens come after. The salt is part of every key: equal tokens under another salt differ.
  struct place {
    content_id parent = kNoContent;  ///< kNoContent: first block of a sequence
    std::uint64_t parent_hash = 0;
    std::uint64_t salt = 0;
  };

  prefix_index(std::int32_t num_blocks, hash_function hash);

  static place root(std::uint64_t salt);
  /// Where the children of a block's content belong. The block must have content.
  place below(block_id block) const;

  /// The findable block with these tokens at this place, or kNoBlock.
  block_id find(const place& where, std::span<const token_id> tokens) const;
  /// The block holds new content and can be found from now on.
  void insert(block_id block, const place& where, tokens_ptr tokens, bool draft_valid);
  /// The block holds the same content as a findable one; it is not found itself, its children belong to that content.
  void insert_twin(block_id block, block_id findable);
  /// The block's contents are gone.
  void erase(block_id block);

  bool has_content(block_id block) const { return at(block).content != kNoContent; }
  bool is_findable(block_id block) const { return at(block).findable; }
  bool holds(block_id block, const place& where, std::span<const token_id> tokens) const;
  bool draft_valid(block_id block) const { return at(block).draft_valid; }
  void set_draft_valid(block_id block) { at(block).draft_valid = true; }
  /// The table against the entries, O(blocks).
  void check() const;

 private:
  struct entry {
    content_id content = kNoContent;
    std::uint64_t hash = 0;
    place where;
    tokens_ptr tokens;
    block_id next = kNoBlock;  // in the same bucket
    bool findable = false;
    bool draft_valid = false;
  };
  entry& at(block_id block) { return entries_[static_cast<std::size_t>(block)]; }
  const entry& at(block_id block) const { return entries_[static_cast<std::size_t>(block)]; }
  std::size_t bucket_of(std::uint64_t hash) const { return static_cast<std::size_t>(hash) & (buckets_.size() - 1); }

  hash_function hash_;
  std::vector<entry> entries_;     // by block
  std::vector<block_id> buckets_;  // a power of two; first block of each chain
  content_id last_content_ = kNoContent;
};

}  // namespace tandem

#include "core/kv/prefix_index.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/assert.hpp"

namespace tandem {
namespace {

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 32)) * 0xD6E8FEB86659FD93ull;
  return value ^ (value >> 32);
}

std::uint64_t content_hash(std::uint64_t parent_hash, std::span<const token_id> tokens) {
  std::uint64_t hash = mix(parent_hash + 0x9E3779B97F4A7C15ull);
  for (const token_id token : tokens) hash = mix(hash ^ (static_cast<std::uint32_t>(token) + 1ull));
  return hash;
}

}  // namespace

prefix_index::prefix_index(std::int32_t num_blocks, hash_function hash)
    : hash_(hash != nullptr ? hash : content_hash),
      entries_(static_cast<std::size_t>(num_blocks)),
      buckets_(std::bit_ceil(std::max<std::size_t>(static_cast<std::size_t>(num_blocks), 1)), kNoBlock) {}

prefix_index::place prefix_index::root(std::uint64_t salt) {
  return {kNoContent, mix(~salt), salt};
}

prefix_index::place prefix_index::below(block_id block) const {
  TANDEM_ASSERT(has_content(block));
  return {at(block).content, at(block).hash, at(block).where.salt};
}

bool prefix_index::holds(block_id block, const place& where, std::span<const token_id> tokens) const {
  const entry& candidate = at(block);
  return candidate.content != kNoContent && candidate.where.parent == where.parent &&
         candidate.where.salt == where.salt &&
         std::equal(candidate.tokens->begin(), candidate.tokens->end(), tokens.begin(), tokens.end());
}

block_id prefix_index::find(const place& where, std::span<const token_id> tokens) const {
  const std::uint64_t hash = hash_(where.parent_hash, tokens);
  for (block_id block = buckets_[bucket_of(hash)]; block != kNoBlock; block = at(block).next) {
    // Equal hashes are a hint, equal tokens behind the same parent are the proof.
    if (at(block).hash == hash && holds(block, where, tokens)) return block;
  }
  return kNoBlock;
}

void prefix_index::insert(block_id block, const place& where, tokens_ptr tokens, bool draft_valid) {
  TANDEM_ASSERT(!has_content(block) && tokens != nullptr);
  const std::uint64_t hash = hash_(where.parent_hash, *tokens);
  block_id& first = buckets_[bucket_of(hash)];
  at(block) = {++last_content_, hash, where, std::move(tokens), first, true, draft_valid};
  first = block;
}

void prefix_index::insert_twin(block_id block, block_id findable) {
  TANDEM_ASSERT(!has_content(block) && is_findable(findable) && block != findable);
  at(block) = at(findable);
  at(block).next = kNoBlock;
  at(block).findable = false;
}

void prefix_index::erase(block_id block) {
  if (is_findable(block)) {
    block_id* link = &buckets_[bucket_of(at(block).hash)];
    while (*link != block) {
      TANDEM_ASSERT(*link != kNoBlock);
      link = &at(*link).next;
    }
    *link = at(block).next;
  }
  at(block) = {};
}

void prefix_index::check() const {
  std::size_t linked = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (block_id block = buckets_[bucket]; block != kNoBlock; block = at(block).next) {
      TANDEM_ASSERT(++linked <= entries_.size());
      TANDEM_ASSERT(is_findable(block) && has_content(block) && bucket_of(at(block).hash) == bucket);
      TANDEM_ASSERT(find(at(block).where, *at(block).tokens) == block);  // one findable block per content
    }
  }
  std::size_t findable = 0;
  for (const entry& each : entries_) findable += each.findable ? 1 : 0;
  TANDEM_ASSERT(linked == findable);
}

}  // namespace tandem

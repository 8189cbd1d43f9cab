#include "core/kv/block_allocator.hpp"

#include <algorithm>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "core/kv/block_pool.hpp"
#include "core/kv/prefix_index.hpp"

namespace tandem {

struct block_allocator::impl {
  impl(options opts, std::uint32_t generation)
      : settings(opts), pool_gen(generation), pool(opts.num_blocks), index(opts.num_blocks, opts.hash_for_test) {
    TANDEM_ASSERT(opts.block_size >= 1 && opts.block_size <= limits::kMaxBlockSize);
  }

  block_id take_block();
  void publish(const publish_blocks::entry& entry);
  void release(block_id block);
  void assert_conserved() const {
    TANDEM_ASSERT(pool.free_count() + pool.held_count() + pool.cached_count() == settings.num_blocks);
  }

  options settings;
  std::uint32_t pool_gen;
  block_pool pool;
  prefix_index index;
};

block_id block_allocator::impl::take_block() {
  const block_id fresh = pool.take_free();
  if (fresh != kNoBlock) return fresh;
  const block_id evicted = pool.take_oldest_cached();
  if (evicted != kNoBlock) index.erase(evicted);
  return evicted;
}

void block_allocator::impl::publish(const publish_blocks::entry& entry) {
  TANDEM_ASSERT(pool.contains(entry.block) && entry.tokens != nullptr);
  TANDEM_ASSERT(entry.tokens->size() == static_cast<std::size_t>(settings.block_size));
  const bool first = entry.parent == kNoBlock;
  TANDEM_ASSERT(first || pool.contains(entry.parent));
  // Behind a parent nobody knows, the block could not be found: leave it unpublished.
  if (!first && !index.has_content(entry.parent)) return;
  const prefix_index::place where = first ? prefix_index::root(entry.salt) : index.below(entry.parent);
  if (where.salt != entry.salt) return;

  if (index.has_content(entry.block)) {
    if (entry.draft_valid && index.holds(entry.block, where, *entry.tokens)) index.set_draft_valid(entry.block);
    return;
  }
  if (pool.holds(entry.block) == 0) return;  // released meanwhile
  const block_id known = index.find(where, *entry.tokens);
  if (known == kNoBlock) {
    index.insert(entry.block, where, entry.tokens, entry.draft_valid);
  } else {
    index.insert_twin(entry.block, known);
  }
}

void block_allocator::impl::release(block_id block) {
  TANDEM_ASSERT(pool.contains(block));
  const bool keep = index.is_findable(block);
  if (pool.unpin(block, keep) && !keep) index.erase(block);
}

block_allocator::block_allocator(options opts, std::uint32_t pool_gen)
    : impl_(std::make_unique<impl>(opts, pool_gen)) {}
block_allocator::~block_allocator() = default;

blocks_leased block_allocator::lease(const lease_blocks& request) {
  TANDEM_ASSERT(request.want >= 0);
  if (request.pool_gen != impl_->pool_gen) return {request.pool_gen, {}, 0};
  blocks_leased leased{impl_->pool_gen, {}, 0};
  const std::int32_t available = impl_->pool.free_count() + impl_->pool.cached_count();
  const std::int32_t granted = std::min(request.want, available);
  leased.blocks.reserve(static_cast<std::size_t>(granted));
  for (std::int32_t i = 0; i < granted; ++i) leased.blocks.push_back(impl_->take_block());
  leased.still_free = available - granted;
  impl_->assert_conserved();
  return leased;
}

prefix_matched block_allocator::match(const match_prefix& request) {
  TANDEM_ASSERT(request.tokens != nullptr);
  prefix_matched matched{request.id, request.incarnation, request.pool_gen, {}, 0, 0};
  if (!impl_->settings.prefix_caching || request.pool_gen != impl_->pool_gen) return matched;
  const auto block_size = static_cast<std::size_t>(impl_->settings.block_size);
  const auto allowed = static_cast<std::size_t>(std::max(request.max_tokens, 0));
  const std::span<const token_id> tokens(request.tokens->data(), std::min(request.tokens->size(), allowed));
  prefix_index::place where = prefix_index::root(request.salt);
  bool draft_reaches = true;
  for (std::size_t end = block_size; end <= tokens.size(); end += block_size) {
    const block_id found = impl_->index.find(where, tokens.subspan(end - block_size, block_size));
    if (found == kNoBlock) break;
    impl_->pool.pin(found);
    matched.blocks.push_back(found);
    matched.cached_target = static_cast<std::int32_t>(end);
    draft_reaches = draft_reaches && impl_->index.draft_valid(found);
    if (draft_reaches) matched.cached_draft = matched.cached_target;
    where = impl_->index.below(found);
  }
  impl_->assert_conserved();
  return matched;
}

void block_allocator::publish(const publish_blocks& request) {
  if (request.pool_gen != impl_->pool_gen || !impl_->settings.prefix_caching) return;
  for (const publish_blocks::entry& entry : request.entries) impl_->publish(entry);
  impl_->assert_conserved();
}

void block_allocator::share(const share_blocks& request) {
  if (request.pool_gen != impl_->pool_gen) return;
  for (const block_id block : request.blocks) {
    TANDEM_ASSERT(impl_->pool.contains(block) && impl_->pool.holds(block) > 0);
    impl_->pool.pin(block);
  }
  impl_->assert_conserved();
}

void block_allocator::release(const release_blocks& request) {
  if (request.pool_gen != impl_->pool_gen) return;
  // Backwards: a sequence's last blocks become the least recently used, so a chain is evicted from its end and what is
  // left of it can still be found.
  for (auto block = request.blocks.rbegin(); block != request.blocks.rend(); ++block) impl_->release(*block);
  impl_->assert_conserved();
}

void block_allocator::adopt(const adopt_blocks& request) {
  if (request.pool_gen != impl_->pool_gen) return;
  impl_->pool = block_pool(impl_->settings.num_blocks);
  impl_->index = prefix_index(impl_->settings.num_blocks, impl_->settings.hash_for_test);
  for (const block_id block : request.held) impl_->pool.adopt(block);
  impl_->assert_conserved();
}

block_allocator::counts block_allocator::count() const {
  return {impl_->pool.free_count(), impl_->pool.held_count(), impl_->pool.cached_count()};
}

std::uint32_t block_allocator::pool_gen() const {
  return impl_->pool_gen;
}

void block_allocator::check() const {
  impl_->assert_conserved();
  impl_->pool.check();
  impl_->index.check();
  for (block_id block = 0; block < impl_->pool.size(); ++block) {
    const bool held = impl_->pool.holds(block) > 0;
    const bool cached = impl_->pool.is_cached(block);
    TANDEM_ASSERT(!cached || impl_->index.is_findable(block));
    TANDEM_ASSERT(held || cached || !impl_->index.has_content(block));
  }
}

}  // namespace tandem

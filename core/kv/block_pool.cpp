#include "core/kv/block_pool.hpp"

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {

block_pool::block_pool(std::int32_t num_blocks) {
  TANDEM_ASSERT(num_blocks >= 0 && num_blocks <= limits::kMaxKvBlocks);
  slots_.resize(static_cast<std::size_t>(num_blocks));
  free_ = num_blocks;
  for (block_id block = 0; block < num_blocks; ++block) append(free_list_, block);
}

block_pool::slot& block_pool::at(block_id block) {
  TANDEM_ASSERT(contains(block));
  return slots_[static_cast<std::size_t>(block)];
}

const block_pool::slot& block_pool::at(block_id block) const {
  TANDEM_ASSERT(contains(block));
  return slots_[static_cast<std::size_t>(block)];
}

void block_pool::append(list& to, block_id block) {
  at(block).previous = to.last;
  at(block).next = kNoBlock;
  (to.last == kNoBlock ? to.first : at(to.last).next) = block;
  to.last = block;
}

void block_pool::prepend(list& to, block_id block) {
  at(block).previous = kNoBlock;
  at(block).next = to.first;
  (to.first == kNoBlock ? to.last : at(to.first).previous) = block;
  to.first = block;
}

void block_pool::unlink(list& from, block_id block) {
  const slot links = at(block);
  (links.previous == kNoBlock ? from.first : at(links.previous).next) = links.next;
  (links.next == kNoBlock ? from.last : at(links.next).previous) = links.previous;
  at(block).previous = at(block).next = kNoBlock;
}

block_id block_pool::take_free() {
  const block_id block = free_list_.first;
  if (block != kNoBlock) adopt(block);
  return block;
}

block_id block_pool::take_oldest_cached() {
  const block_id block = cached_list_.first;
  if (block != kNoBlock) pin(block);
  return block;
}

void block_pool::pin(block_id block) {
  slot& pinned = at(block);
  TANDEM_ASSERT(pinned.holds > 0 || pinned.cached);
  if (pinned.cached) {
    unlink(cached_list_, block);
    pinned.cached = false;
    --cached_;
    ++held_;
  }
  ++pinned.holds;
}

bool block_pool::unpin(block_id block, bool keep) {
  slot& released = at(block);
  TANDEM_ASSERT(released.holds > 0);
  if (--released.holds > 0) return false;
  released.cached = keep;
  --held_;
  if (keep) {
    ++cached_;
    append(cached_list_, block);
  } else {
    ++free_;
    prepend(free_list_, block);
  }
  return true;
}

void block_pool::adopt(block_id block) {
  slot& adopted = at(block);
  if (adopted.holds > 0 || adopted.cached) return pin(block);
  unlink(free_list_, block);
  --free_;
  ++held_;
  adopted.holds = 1;
}

std::int32_t block_pool::check_list(const list& blocks, bool cached) const {
  std::int32_t length = 0;
  block_id previous = kNoBlock;
  for (block_id block = blocks.first; block != kNoBlock; block = at(block).next) {
    TANDEM_ASSERT(at(block).previous == previous && at(block).holds == 0 && at(block).cached == cached);
    TANDEM_ASSERT(length < size());
    previous = block;
    ++length;
  }
  TANDEM_ASSERT(blocks.last == previous);
  return length;
}

void block_pool::check() const {
  TANDEM_ASSERT(check_list(free_list_, false) == free_);
  TANDEM_ASSERT(check_list(cached_list_, true) == cached_);
  std::int32_t held = 0;
  for (const slot& each : slots_) held += each.holds > 0 ? 1 : 0;
  TANDEM_ASSERT(held == held_ && free_ + held_ + cached_ == size());
}

}  // namespace tandem

#include "tests/core/naive_allocator.hpp"

#include <algorithm>

namespace tandem::testing {

naive_allocator::naive_allocator(std::int32_t num_blocks) : blocks_(static_cast<std::size_t>(num_blocks)) {
  for (block_id id = 0; id < num_blocks; ++id) free_.insert(id);
}

bool naive_allocator::findable(block_id id) const {
  const block& each = blocks_[static_cast<std::size_t>(id)];
  const auto found = index_.find(each.place);
  return each.content != 0 && found != index_.end() && found->second == id;
}

bool naive_allocator::leased(const blocks_leased& actual, std::int32_t want) {
  const auto available = static_cast<std::int32_t>(free_.size() + cached_.size());
  if (static_cast<std::int32_t>(actual.blocks.size()) != std::min(want, available)) return false;
  for (const block_id id : actual.blocks) {
    block& taken = blocks_[static_cast<std::size_t>(id)];
    if (free_.empty()) {
      if (cached_.front() != id) return false;
      cached_.pop_front();
      index_.erase(taken.place);
    } else if (free_.erase(id) == 0) {
      return false;
    }
    taken = {};
    taken.holds = 1;
  }
  return actual.still_free == static_cast<std::int32_t>(free_.size() + cached_.size());
}

prefix_matched naive_allocator::match(const match_prefix& request, std::int32_t block_size) {
  prefix_matched out;
  std::uint64_t parent = 0;
  bool draft = true;
  const auto size = std::min<std::size_t>(request.tokens->size(), static_cast<std::size_t>(request.max_tokens));
  const auto step = static_cast<std::size_t>(block_size);
  for (std::size_t begin = 0; begin + step <= size; begin += step) {
    const auto from = request.tokens->begin() + static_cast<std::ptrdiff_t>(begin);
    const auto found = index_.find({parent, request.salt, {from, from + block_size}});
    if (found == index_.end()) break;
    block& hit = blocks_[static_cast<std::size_t>(found->second)];
    if (hit.holds++ == 0) cached_.remove(found->second);
    out.blocks.push_back(found->second);
    out.cached_target += block_size;
    draft = draft && hit.draft_valid;
    if (draft) out.cached_draft = out.cached_target;
    parent = hit.content;
  }
  return out;
}

void naive_allocator::publish(const publish_blocks::entry& entry) {
  block& published = blocks_[static_cast<std::size_t>(entry.block)];
  std::uint64_t parent = 0;
  if (entry.parent != kNoBlock) {
    parent = blocks_[static_cast<std::size_t>(entry.parent)].content;
    if (parent == 0) return;
  }
  const key place{parent, entry.salt, *entry.tokens};
  if (published.content != 0) {
    if (published.place == place && entry.draft_valid) published.draft_valid = true;
    return;
  }
  if (published.holds == 0) return;
  const auto found = index_.find(place);
  published.place = place;
  if (found != index_.end()) {
    published.content = blocks_[static_cast<std::size_t>(found->second)].content;
    return;
  }
  published.content = ++contents_;
  published.draft_valid = entry.draft_valid;
  index_[place] = entry.block;
}

void naive_allocator::share(const std::vector<block_id>& blocks) {
  for (const block_id id : blocks) ++blocks_[static_cast<std::size_t>(id)].holds;
}

void naive_allocator::release(const std::vector<block_id>& blocks) {
  for (auto id = blocks.rbegin(); id != blocks.rend(); ++id) {
    block& released = blocks_[static_cast<std::size_t>(*id)];
    if (--released.holds > 0) continue;
    if (findable(*id)) {
      cached_.push_back(*id);
    } else {
      released = {};
      free_.insert(*id);
    }
  }
}

block_allocator::counts naive_allocator::count() const {
  const auto held = std::count_if(blocks_.begin(), blocks_.end(), [](const block& each) { return each.holds > 0; });
  return {static_cast<std::int32_t>(free_.size()), static_cast<std::int32_t>(held),
          static_cast<std::int32_t>(cached_.size())};
}

}  // namespace tandem::testing

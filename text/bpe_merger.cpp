#include "text/bpe_merger.hpp"

#include <algorithm>
#include <queue>

namespace tandem::text {
namespace {

// Below this a plain search for the best pair is faster than a queue.
constexpr std::size_t kShortWord = 24;

std::uint64_t pair_key(token_id left, token_id right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
}

// Symbols as a doubly linked list, so that a merge is O(1).
struct link {
  token_id id = kNoToken;  // kNoToken: swallowed by its left neighbour
  std::int32_t previous = -1;
  std::int32_t next = -1;
};

struct candidate {
  std::int32_t rank = 0;
  std::int32_t left = 0;
  std::int32_t right = 0;
  token_id left_id = kNoToken;
  token_id right_id = kNoToken;
  token_id merged = kNoToken;
  bool operator<(const candidate& other) const {  // std::priority_queue gives the greatest
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

std::vector<link> make_links(const std::vector<token_id>& symbols) {
  std::vector<link> links(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const auto at = static_cast<std::int32_t>(i);
    links[i] = {symbols[i], at - 1, i + 1 < symbols.size() ? at + 1 : -1};
  }
  return links;
}

}  // namespace

void bpe_merger::add_merge(token_id left, token_id right, token_id merged) {
  merges_.try_emplace(pair_key(left, right), merge{static_cast<std::int32_t>(merges_.size()), merged});
}

const bpe_merger::merge* bpe_merger::find(token_id left, token_id right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void bpe_merger::encode(std::string_view word, std::vector<token_id>& out) const {
  std::vector<token_id> symbols;
  symbols.reserve(word.size());
  for (const char c : word) {
    const token_id id = byte_ids_[static_cast<unsigned char>(c)];
    if (id != kNoToken) symbols.push_back(id);
  }
  if (symbols.size() <= kShortWord) {
    merge_short(symbols);
  } else {
    merge_long(symbols);
  }
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void bpe_merger::merge_short(std::vector<token_id>& symbols) const {
  while (symbols.size() > 1) {
    const merge* best = nullptr;
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const merge* const here = find(symbols[i], symbols[i + 1]);
      if (here && (!best || here->rank < best->rank)) {
        best = here;
        best_at = i;
      }
    }
    if (!best) return;
    symbols[best_at] = best->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

void bpe_merger::merge_long(std::vector<token_id>& symbols) const {
  std::vector<link> links = make_links(symbols);
  std::priority_queue<candidate> queue;
  const auto offer = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    const token_id left_id = links[static_cast<std::size_t>(left)].id;
    const token_id right_id = links[static_cast<std::size_t>(right)].id;
    if (const merge* const here = find(left_id, right_id)) {
      queue.push({here->rank, left, right, left_id, right_id, here->merged});
    }
  };
  for (std::size_t i = 0; i + 1 < links.size(); ++i) {
    offer(static_cast<std::int32_t>(i), static_cast<std::int32_t>(i + 1));
  }
  while (!queue.empty()) {
    const candidate best = queue.top();
    queue.pop();
    link& left = links[static_cast<std::size_t>(best.left)];
    link& right = links[static_cast<std::size_t>(best.right)];
    if (left.id != best.left_id || right.id != best.right_id || left.next != best.right) continue;  // stale
    left.id = best.merged;
    left.next = right.next;
    right.id = kNoToken;
    if (left.next >= 0) links[static_cast<std::size_t>(left.next)].previous = best.left;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }
  symbols.clear();
  for (const link& symbol : links) {
    if (symbol.id != kNoToken) symbols.push_back(symbol.id);
  }
}

}  // namespace tandem::text

#include "text/special_matcher.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace tandem::text {

std::int32_t special_matcher::step(std::int32_t from, unsigned char byte) const {
  for (const auto& [label, target] : nodes_[static_cast<std::size_t>(from)].next) {
    if (label == byte) return target;
  }
  return -1;
}

void special_matcher::add(std::string_view name, token_id id, bool needs_trust) {
  TANDEM_ASSERT(!name.empty());
  std::int32_t at = 0;
  for (const char c : name) {
    std::int32_t next = step(at, static_cast<unsigned char>(c));
    if (next < 0) {
      next = static_cast<std::int32_t>(nodes_.size());
      nodes_.emplace_back();
      nodes_[static_cast<std::size_t>(at)].next.emplace_back(static_cast<unsigned char>(c), next);
    }
    at = next;
  }
  node& last = nodes_[static_cast<std::size_t>(at)];
  if (last.id != kNoToken) return;
  last.id = id;
  last.needs_trust = needs_trust;
}

std::optional<special_matcher::match> special_matcher::longest_at(std::string_view text, std::size_t begin,
                                                                  std::size_t trusted_end) const {
  std::optional<match> longest;
  std::int32_t reached = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    reached = step(reached, static_cast<unsigned char>(text[at]));
    if (reached < 0) break;
    const node& here = nodes_[static_cast<std::size_t>(reached)];
    const bool allowed = !here.needs_trust || at < trusted_end;
    if (here.id != kNoToken && allowed) longest = match{begin, at + 1, here.id};
  }
  return longest;
}

std::optional<special_matcher::match> special_matcher::find(std::string_view text, std::size_t from,
                                                            std::span<const byte_range> trusted) const {
  auto range = std::upper_bound(trusted.begin(), trusted.end(), from,
                                [](std::size_t at, const byte_range& each) { return at < each.end; });
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    while (range != trusted.end() && range->end <= begin) ++range;
    const bool inside = range != trusted.end() && range->begin <= begin;
    if (const auto found = longest_at(text, begin, inside ? range->end : 0)) return found;
  }
  return std::nullopt;
}

}  // namespace tandem::text

#pragma once
/// Finds special and user-defined tokens in text: leftmost, then longest.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"

namespace tandem::text {

/// A trie over bytes. Immutable after it is filled.
class special_matcher {
 public:
  special_matcher() : nodes_(1) {}
  /// `name` must not be empty. Of equal names the first counts. `needs_trust`: only found inside one trusted range.
  void add(std::string_view name, token_id id, bool needs_trust);

  struct match {
    std::size_t begin = 0;
    std::size_t end = 0;
    token_id id = kNoToken;
  };
  /// The first match that begins at or after `from`. `trusted`: ascending, disjoint.
  std::optional<match> find(std::string_view text, std::size_t from, std::span<const byte_range> trusted) const;

 private:
  struct node {
    std::vector<std::pair<unsigned char, std::int32_t>> next;  // few: searched in order
    token_id id = kNoToken;
    bool needs_trust = false;
  };
  std::optional<match> longest_at(std::string_view text, std::size_t begin, std::size_t trusted_end) const;
  std::int32_t step(std::int32_t from, unsigned char byte) const;
  std::vector<node> nodes_;
};

}  // namespace tandem::text

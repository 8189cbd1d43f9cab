#pragma once
/// Byte-pair merges within one word: the lowest rank first, of equals the leftmost.

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/ids.hpp"

namespace tandem::text {

/// Immutable after it is filled.
class bpe_merger {
 public:
  /// Id of a single byte, or `fallback` (kNoToken: bytes without a token are dropped, as the reference does).
  void set_byte(unsigned char byte, token_id id) { byte_ids_[byte] = id; }
  /// Merges are added by rank; of equal pairs the first counts.
  void add_merge(token_id left, token_id right, token_id merged);
  void reserve(std::size_t merges) { merges_.reserve(merges); }

  /// Appends the ids of `word` (raw bytes). O(n log n).
  void encode(std::string_view word, std::vector<token_id>& out) const;

 private:
  struct merge {
    std::int32_t rank = 0;
    token_id merged = kNoToken;
  };
  const merge* find(token_id left, token_id right) const;
  void merge_short(std::vector<token_id>& symbols) const;
  void merge_long(std::vector<token_id>& symbols) const;

  std::array<token_id, 256> byte_ids_ = filled();
  std::unordered_map<std::uint64_t, merge> merges_;

  static constexpr std::array<token_id, 256> filled() {
    std::array<token_id, 256> ids{};
    ids.fill(kNoToken);
    return ids;
  }
};

}  // namespace tandem::text

#pragma once
/// Prompt lookup: the tokens that followed the longest recent repetition of the sequence's tail. Owner: the ngram
/// drafter, one per sequence. Amortised O(longest n-gram) per appended token, whatever the length.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/ids.hpp"

namespace tandem {

class ngram_index {
 public:
  /// 1 ≤ min ≤ max ≤ limits::kMaxNgram.
  ngram_index(std::int32_t min_ngram, std::int32_t max_ngram);

  void append(std::span<const token_id> tokens);
  struct repetition {
    std::int32_t end = -1;    ///< position behind the earlier occurrence
    std::int32_t length = 0;  ///< tokens that repeat, measured up to limits::kMaxMatchTokens; 0: no tail repeats
  };
  /// The most recent earlier occurrence of the longest tail n-gram (max first, then shorter, down to min). Tokens are
  /// compared on a hash match.
  repetition find() const;
  /// The k tokens that followed it. When it is so recent that fewer follow, the text repeats with that period, and so
  /// does the proposal.
  std::vector<token_id> continue_from(repetition found, std::int32_t k) const;
  /// Both at once; empty when no tail repeats.
  std::vector<token_id> propose(std::int32_t k) const;
  std::int32_t size() const { return static_cast<std::int32_t>(history_.size()); }

 private:
  void note_ends_at(std::int32_t end);
  bool repeats(std::int32_t length, std::int32_t end) const;
  std::int32_t length_of(std::int32_t end) const;

  std::int32_t min_;
  std::int32_t max_;
  std::vector<token_id> history_;
  // by n-gram length: hash of the n tokens → position after its latest and its latest-but-one occurrence
  struct occurrences {
    std::int32_t latest = -1;
    std::int32_t before = -1;
  };
  std::vector<std::unordered_map<std::uint64_t, occurrences>> ends_;
};

}  // namespace tandem

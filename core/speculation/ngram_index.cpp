#include "core/speculation/ngram_index.hpp"

#include <algorithm>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "core/speculation/tail_hash.hpp"

namespace tandem {
ngram_index::ngram_index(std::int32_t min_ngram, std::int32_t max_ngram) : min_(min_ngram), max_(max_ngram) {
  TANDEM_ASSERT(1 <= min_ && min_ <= max_ && max_ <= limits::kMaxNgram);
  ends_.resize(static_cast<std::size_t>(max_ - min_ + 1));
}

void ngram_index::append(std::span<const token_id> tokens) {
  TANDEM_ASSERT(history_.size() + tokens.size() <= static_cast<std::size_t>(limits::kMaxModelLength));
  for (const token_id token : tokens) {
    history_.push_back(token);
    note_ends_at(size());
  }
}

void ngram_index::note_ends_at(std::int32_t end) {
  tail_hash hash;
  for (std::int32_t length = 1; length <= std::min(max_, end); ++length) {
    hash.prepend(history_[static_cast<std::size_t>(end - length)]);
    if (length < min_) continue;
    occurrences& seen = ends_[static_cast<std::size_t>(length - min_)][hash.value()];
    seen.before = seen.latest;
    seen.latest = end;
  }
}

bool ngram_index::repeats(std::int32_t length, std::int32_t end) const {
  return std::equal(history_.end() - length, history_.end(), history_.begin() + (end - length));
}

std::int32_t ngram_index::length_of(std::int32_t end) const {
  const std::int32_t most = std::min(end, limits::kMaxMatchTokens);
  std::int32_t length = 0;
  while (length < most && history_[static_cast<std::size_t>(size() - 1 - length)] ==
                              history_[static_cast<std::size_t>(end - 1 - length)])
    ++length;
  return length;
}

ngram_index::repetition ngram_index::find() const {
  std::int32_t longest_end = -1;
  tail_hash hash;
  for (std::int32_t length = 1; length <= std::min(max_, size()); ++length) {
    hash.prepend(history_[static_cast<std::size_t>(size() - length)]);
    if (length < min_) continue;
    const auto& seen_at_length = ends_[static_cast<std::size_t>(length - min_)];
    const auto seen = seen_at_length.find(hash.value());
    TANDEM_ASSERT(seen != seen_at_length.end() && seen->second.latest == size());
    const std::int32_t end = seen->second.before;
    if (end >= length && repeats(length, end)) longest_end = end;
  }
  if (longest_end < 0) return {};
  return {longest_end, length_of(longest_end)};
}

std::vector<token_id> ngram_index::continue_from(repetition found, std::int32_t k) const {
  TANDEM_ASSERT(k <= limits::kMaxDraftTokens);
  if (k <= 0 || found.length == 0) return {};
  TANDEM_ASSERT(0 < found.end && found.end < size());
  const std::int32_t period = size() - found.end;
  std::vector<token_id> proposal;
  proposal.reserve(static_cast<std::size_t>(k));
  for (std::int32_t i = 0; i < k; ++i) proposal.push_back(history_[static_cast<std::size_t>(found.end + i % period)]);
  return proposal;
}

std::vector<token_id> ngram_index::propose(std::int32_t k) const {
  return continue_from(find(), k);
}

}  // namespace tandem

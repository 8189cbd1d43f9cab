#include "core/speculation/ngram_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tandem {
namespace {

using tokens_t = std::vector<token_id>;

// The latest earlier occurrence of the longest repeated tail, by trying everything.
tokens_t naive_proposal(const tokens_t& history, std::int32_t min, std::int32_t max, std::int32_t k) {
  const auto size = static_cast<std::int32_t>(history.size());
  for (std::int32_t length = std::min(max, size); length >= min; --length) {
    for (std::int32_t end = size - 1; end >= length; --end) {
      if (!std::equal(history.end() - length, history.end(), history.begin() + (end - length))) continue;
      tokens_t extended = history;
      for (std::int32_t i = 0; i < k; ++i) extended.push_back(extended[static_cast<std::size_t>(end + i)]);
      return {extended.begin() + size, extended.end()};
    }
  }
  return {};
}

TEST(ngram_index, proposes_what_followed_the_last_repetition) {
  ngram_index index(1, 3);
  index.append(tokens_t{1, 2, 3, 9, 8, 1, 2, 3, 7, 6, 1, 2, 3});
  EXPECT_EQ(index.propose(2), (tokens_t{7, 6}));
}

TEST(ngram_index, prefers_a_longer_match_to_a_more_recent_one) {
  ngram_index index(1, 3);
  index.append(tokens_t{1, 2, 3, 9, 5, 3, 8, 1, 2, 3});
  EXPECT_EQ(index.propose(1), (tokens_t{9}));
}

TEST(ngram_index, proposes_nothing_when_no_tail_repeats_or_nothing_is_wanted) {
  ngram_index index(2, 4);
  EXPECT_TRUE(index.propose(4).empty());
  index.append(tokens_t{1});
  EXPECT_TRUE(index.propose(4).empty());
  index.append(tokens_t{2, 1});
  EXPECT_TRUE(index.propose(4).empty());
  index.append(tokens_t{2});
  EXPECT_TRUE(index.propose(0).empty());
  EXPECT_EQ(index.propose(3), (tokens_t{1, 2, 1}));
}

TEST(ngram_index, continues_very_repetitive_text_with_its_period) {
  ngram_index index(1, 3);
  index.append(tokens_t(50, 4));
  EXPECT_EQ(index.propose(8), tokens_t(8, 4));
}

TEST(ngram_index, equals_trying_everything_on_random_text) {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    const auto min = static_cast<std::int32_t>(1 + random() % 3);
    const auto max = static_cast<std::int32_t>(min + static_cast<std::int32_t>(random() % 4));
    const std::uint32_t alphabet = 2 + static_cast<std::uint32_t>(random() % 5);
    ngram_index index(min, max);
    tokens_t history;
    for (int i = 0; i < 120; ++i) {
      tokens_t piece(1 + random() % 3);
      for (token_id& token : piece) token = static_cast<token_id>(random() % alphabet);
      index.append(piece);
      history.insert(history.end(), piece.begin(), piece.end());
      ASSERT_EQ(index.propose(6), naive_proposal(history, min, max, 6));
    }
    EXPECT_EQ(index.size(), static_cast<std::int32_t>(history.size()));
  }
}

TEST(ngram_index, takes_a_long_text_of_few_and_of_many_different_tokens) {
  for (const std::uint32_t alphabet : {1u, 2u, 150'000u}) {
    std::mt19937 random(2);
    ngram_index index(2, 5);
    tokens_t text(60'000);
    for (token_id& token : text) token = static_cast<token_id>(random() % alphabet);
    index.append(text);
    index.append(std::span(text).first(40));
    EXPECT_EQ(index.propose(8).size(), 8u);
  }
}

}  // namespace
}  // namespace tandem

#include "app/perplexity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace tandem::app {
namespace {

std::vector<token_id> counted(std::size_t count) {
  std::vector<token_id> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

/// All prompts, one after the other, and how many tokens they score.
struct pieces {
  std::vector<std::vector<token_id>> prompts;
  std::size_t scored = 0;
};

pieces all_of(const chunked_text& text) {
  pieces out;
  for (std::size_t i = 0; i < text.chunks(); ++i) {
    out.prompts.push_back(text.prompt(i));
    out.scored += out.prompts.back().size() - 1;
  }
  return out;
}

TEST(chunked_text, is_cut_into_prompts_of_the_context_and_a_shorter_last_one) {
  const pieces cut = all_of(chunked_text(counted(7), kNoToken, 3));
  EXPECT_EQ(cut.prompts, (std::vector<std::vector<token_id>>{{100, 101, 102}, {103, 104, 105}}));
  EXPECT_EQ(cut.scored, 4U);
  EXPECT_EQ(all_of(chunked_text(counted(8), kNoToken, 3)).prompts.back(), (std::vector<token_id>{106, 107}));
}

TEST(chunked_text, with_a_bos_scores_every_token_of_the_text) {
  const pieces cut = all_of(chunked_text(counted(5), 1, 3));
  EXPECT_EQ(cut.prompts, (std::vector<std::vector<token_id>>{{1, 100, 101}, {1, 102, 103}, {1, 104}}));
  EXPECT_EQ(cut.scored, 5U);
}

TEST(chunked_text, without_a_token_to_score_has_no_chunk) {
  EXPECT_EQ(chunked_text({}, kNoToken, 512).chunks(), 0U);
  EXPECT_EQ(chunked_text(counted(1), kNoToken, 512).chunks(), 0U);
  EXPECT_EQ(chunked_text({}, 1, 512).chunks(), 0U);
  EXPECT_EQ(chunked_text(counted(1), 1, 512).chunks(), 1U);
  EXPECT_EQ(chunked_text(counted(2), kNoToken, 2).chunks(), 1U);
}

TEST(likelihood_tally, of_equal_odds_is_their_number) {
  likelihood_tally tally;
  for (int i = 0; i < 1000; ++i) tally.add(-std::log(8.0));
  EXPECT_EQ(tally.tokens(), 1000);
  EXPECT_NEAR(tally.perplexity(), 8.0, 1e-12);
  EXPECT_NEAR(tally.mean_error(), 0.0, 1e-12);
}

TEST(likelihood_tally, has_the_mean_and_the_standard_error_of_its_samples) {
  likelihood_tally tally;
  for (const double nll : {1.0, 2.0, 3.0, 6.0}) tally.add(-nll);
  EXPECT_DOUBLE_EQ(tally.mean(), 3.0);
  EXPECT_DOUBLE_EQ(tally.mean_error(), std::sqrt(14.0 / 3.0 / 4.0));  // squares 4 + 1 + 0 + 9
  EXPECT_DOUBLE_EQ(tally.perplexity(), std::exp(3.0));
  EXPECT_DOUBLE_EQ(tally.perplexity_error(), std::exp(3.0) * tally.mean_error());
}

TEST(likelihood_tally, of_an_impossible_token_is_infinite) {
  likelihood_tally tally;
  tally.add(-1.0);
  tally.add(-std::numeric_limits<double>::infinity());
  tally.add(-1.0);
  EXPECT_TRUE(std::isinf(tally.perplexity()));
}

TEST(likelihood_tally, of_nothing_and_of_one_token_has_no_error) {
  likelihood_tally tally;
  EXPECT_EQ(tally.mean_error(), 0.0);
  tally.add(-2.0);
  EXPECT_EQ(tally.mean_error(), 0.0);
  EXPECT_DOUBLE_EQ(tally.mean(), 2.0);
}

}  // namespace
}  // namespace tandem::app

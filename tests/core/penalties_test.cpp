#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/sampling/distribution.hpp"
#include "tests/core/naive_sampling.hpp"

namespace tandem {
namespace {

token_counts counts_of(const std::vector<token_id>& prompt, const std::vector<token_id>& output) {
  token_counts counts;
  counts.add_prompt(prompt);
  for (const token_id token : output) counts.add_output(token);
  return counts;
}

TEST(penalties, equal_the_naive_formulas_on_random_histories) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::uniform_int_distribution<token_id> token(0, 19);
  for (int round = 0; round < 200; ++round) {
    sampling_params params;
    params.repetition_penalty = 0.5F + 0.1F * static_cast<float>(round % 12);
    params.presence_penalty = 0.3F * static_cast<float>(round % 7) - 1.0F;
    params.frequency_penalty = 0.4F * static_cast<float>(round % 5) - 0.8F;
    if (round % 3 == 0) params.logit_bias = {{1, 5.0F}, {7, -100.0F}, {500, 1.0F}};
    if (round % 4 == 0) params.allowed_token_ids = {1, 2, 3, 7, 11, 19, 30};
    params.min_tokens = round % 6;
    params.held_until_min_tokens = {2, 11, 99};
    std::vector<token_id> prompt(5);
    std::vector<token_id> output(static_cast<std::size_t>(round % 9));
    for (auto* tokens : {&prompt, &output}) {
      for (token_id& id : *tokens) id = token(random);
    }
    std::vector<float> row(20);
    for (float& logit : row) logit = normal(random);
    std::vector<token_id> all = prompt;
    all.insert(all.end(), output.begin(), output.end());
    const auto expected = testing::naive_penalized({row.begin(), row.end()}, params, {all, prompt.size()});
    apply_penalties(row, params, counts_of(prompt, output), static_cast<std::int32_t>(output.size()));
    for (std::size_t id = 0; id < row.size(); ++id) {
      if (std::isinf(expected[id])) {
        ASSERT_EQ(static_cast<double>(row[id]), expected[id]) << id;
      } else {
        ASSERT_NEAR(static_cast<double>(row[id]), expected[id], 1e-4) << id;
      }
    }
  }
}

TEST(penalties, A4_hold_end_tokens_back_for_exactly_min_tokens_outputs) {
  sampling_params params;
  params.min_tokens = 3;
  params.held_until_min_tokens = {1};
  params.temperature = 0.0F;
  for (std::int32_t index = 0; index < 6; ++index) {
    std::vector<float> row{0, 9, 1};
    EXPECT_EQ(penalties_active(params, index), index < 3);
    apply_penalties(row, params, {}, index);
    EXPECT_EQ(greedy_token(row), index < 3 ? 2 : 1);
  }
}

TEST(penalties, are_inactive_only_when_they_would_change_nothing) {
  EXPECT_FALSE(penalties_active({}, 0));
  sampling_params params;
  params.repetition_penalty = 1.1F;
  EXPECT_TRUE(penalties_active(params, 0));
  params = {};
  params.logit_bias = {{0, 1.0F}};
  EXPECT_TRUE(penalties_active(params, 0));
  params = {};
  params.allowed_token_ids = {0};
  EXPECT_TRUE(penalties_active(params, 0));
}

TEST(penalties, turn_nan_into_a_ban) {
  std::vector<float> row{std::numeric_limits<float>::quiet_NaN(), 1.0F};
  apply_penalties(row, {}, {}, 0);
  EXPECT_EQ(row[0], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(row[1], 1.0F);
}

TEST(token_counts, forget_rejected_drafts_without_a_trace) {
  token_counts counts = counts_of({1, 2}, {2, 3});
  for (const token_id token : {1, 2, 3, 4, 4}) counts.add_output(token);
  for (const token_id token : {4, 4, 3, 2, 1}) counts.remove_output(token);
  ASSERT_EQ(counts.all().size(), 3u);
  EXPECT_TRUE(counts.all().at(1).in_prompt);
  EXPECT_EQ(counts.all().at(1).in_output, 0);
  EXPECT_EQ(counts.all().at(2).in_output, 1);
  EXPECT_EQ(counts.all().at(3).in_output, 1);
}

}  // namespace
}  // namespace tandem

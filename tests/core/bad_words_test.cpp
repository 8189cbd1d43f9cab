#include "core/sampling/bad_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/sampling/acceptance.hpp"

namespace tandem {
namespace {

using ids = std::vector<token_id>;

sampling_params without(std::vector<ids> words) {
  sampling_params params;
  params.temperature = 0;
  params.bad_words = std::move(words);
  return params;
}

ids banned_behind(const sampling_params& params, const ids& output) {
  std::vector<float> logits(8, 1.0F);
  ban_bad_words(logits, params, output);
  ids banned;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (std::isinf(logits[id])) banned.push_back(static_cast<token_id>(id));
  }
  return banned;
}

TEST(BadWords, BanTheirLastTokenBehindTheirOthers) {
  const sampling_params params = without({{3}, {1, 2}, {4, 1, 5}, {99}});
  EXPECT_EQ(banned_behind(params, {}), (ids{3}));
  EXPECT_EQ(banned_behind(params, {1}), (ids{2, 3}));
  EXPECT_EQ(banned_behind(params, {4, 1}), (ids{2, 3, 5}));
  EXPECT_EQ(banned_behind(params, {4, 1, 7}), (ids{3}));
  EXPECT_EQ(banned_behind(params, {7, 7, 4, 1}), (ids{2, 3, 5}));
  EXPECT_EQ(bad_word_reach(params), 2u);
  EXPECT_EQ(bad_word_reach(without({})), 0u);
}

/// Rows of a made-up model: logits depend on the token before.
std::vector<float> logits_behind(token_id last) {
  std::mt19937 random(static_cast<unsigned>(last + 1));
  std::vector<float> logits(8);
  for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 100.0F;
  return logits;
}

/// One token at a time, without drafts.
ids generate(const sampling_params& params, std::size_t count) {
  ids output;
  token_counts counts;
  while (output.size() < count) {
    std::vector<float> row;
    acceptance_input input;
    input.params = &params;
    input.position = static_cast<std::int64_t>(output.size());
    input.recent_output = output;
    input.logits = [&](std::int32_t) {
      row = logits_behind(output.empty() ? kNoToken : output.back());
      return std::span<float>(row);
    };
    output.push_back(verify_drafts(input, counts).tokens.front());
  }
  return output;
}

bool contains(const ids& text, const ids& word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end()) != text.end();
}

TEST(BadWords, ADraftIsJudgedAsIfTheDraftsBeforeItWereCommitted) {
  const ids plain = generate(without({}), 12);
  for (std::size_t begin = 1; begin < 6; ++begin) {
    const ids word(plain.begin() + static_cast<std::ptrdiff_t>(begin),
                   plain.begin() + static_cast<std::ptrdiff_t>(begin + 3));
    const sampling_params params = without({word});
    const ids expected = generate(params, 12);
    EXPECT_FALSE(contains(expected, word));
    ASSERT_NE(expected, plain);
    // The drafts are right to the end of the bad word: its last token is the first that is not accepted.
    const ids drafts(plain.begin() + 1, plain.begin() + static_cast<std::ptrdiff_t>(begin + 3));
    std::vector<float> row;
    token_counts counts;
    acceptance_input input;
    input.params = &params;
    input.position = 1;
    input.output_index = 1;
    input.recent_output = std::span(plain).first(1);
    input.drafts = drafts;
    input.logits = [&](std::int32_t i) {
      row = logits_behind(i == 0 ? plain[0] : drafts[static_cast<std::size_t>(i) - 1]);
      return std::span<float>(row);
    };
    const ids got = verify_drafts(input, counts).tokens;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin() + 1));
    EXPECT_LT(got.size(), drafts.size() + 1);
  }
}

TEST(BadWords, ThatLeaveNothingEndTheOutput) {
  sampling_params params = without({{5}});
  params.allowed_token_ids = {5};
  std::vector<float> row;
  token_counts counts;
  acceptance_input input;
  input.params = &params;
  input.logits = [&](std::int32_t) {
    row.assign(8, -std::numeric_limits<float>::infinity());
    row[5] = 1;
    return std::span<float>(row);
  };
  for (const float temperature : {0.0F, 1.0F}) {
    params.temperature = temperature;
    const acceptance_output out = verify_drafts(input, counts);
    EXPECT_TRUE(out.stuck);
    EXPECT_TRUE(out.tokens.empty());
  }
}

}  // namespace
}  // namespace tandem

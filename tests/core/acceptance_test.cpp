#include "core/sampling/acceptance.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/sampling/distribution.hpp"

namespace tandem {
namespace {

// Rows of fixed logits; remembers which of them the rule asked for.
struct fixed_rows {
  std::vector<std::vector<float>> rows;
  std::vector<std::int32_t> asked;
  std::vector<float> scratch;

  acceptance_input input(const sampling_params& params, const std::vector<token_id>& drafts, acceptance_rule rule) {
    acceptance_input in;
    in.params = &params;
    in.key = 99;
    in.position = 10;
    in.drafts = drafts;
    in.rule = rule;
    in.logits = [this](std::int32_t row) {
      asked.push_back(row);
      scratch = rows[static_cast<std::size_t>(row)];
      return std::span<float>(scratch);
    };
    return in;
  }
};

constexpr acceptance_rule kRules[] = {acceptance_rule::coupled, acceptance_rule::rejection};

sampling_params greedy() {
  sampling_params params;
  params.temperature = 0.0F;
  return params;
}

TEST(verify_drafts, A13_gives_the_bonus_token_after_full_acceptance) {
  for (const acceptance_rule rule : kRules) {
    fixed_rows rows{{{0, 5, 0}, {5, 0, 0}, {0, 0, 5}}, {}, {}};
    token_counts counts;
    const sampling_params params = greedy();
    const std::vector<token_id> drafts{1, 0};
    const acceptance_output out = verify_drafts(rows.input(params, drafts, rule), counts);
    EXPECT_EQ(out.tokens, (std::vector<token_id>{1, 0, 2}));
    EXPECT_EQ(out.accepted, 2);
    EXPECT_EQ(counts.all().size(), 3u);
  }
}

TEST(verify_drafts, A7_yields_the_targets_token_when_the_only_draft_is_rejected) {
  for (const acceptance_rule rule : kRules) {
    fixed_rows rows{{{0, 5, 0}, {5, 0, 0}}, {}, {}};
    token_counts counts;
    const sampling_params params = greedy();
    const std::vector<token_id> drafts{2};
    const acceptance_output out = verify_drafts(rows.input(params, drafts, rule), counts);
    EXPECT_EQ(out.tokens, (std::vector<token_id>{1}));
    EXPECT_EQ(out.accepted, 0);
    EXPECT_EQ(rows.asked, (std::vector<std::int32_t>{0}));
    EXPECT_EQ(counts.all().size(), 1u);
  }
}

TEST(verify_drafts, A12_rejects_ids_outside_the_vocabulary_without_looking_them_up) {
  constexpr token_id kHuge = std::numeric_limits<token_id>::max();
  for (const acceptance_rule rule : kRules) {
    for (const float temperature : {0.0F, 1.0F}) {
      for (const token_id draft : {kNoToken, std::numeric_limits<token_id>::min(), 3, kHuge}) {
        fixed_rows rows{{{0, 5, 0}, {5, 0, 0}}, {}, {}};
        token_counts counts;
        sampling_params params;
        params.temperature = temperature;
        const std::vector<token_id> drafts{draft};
        acceptance_input input = rows.input(params, drafts, rule);
        const std::vector<std::vector<float>> q{{0.5F, 0.25F, 0.25F}};
        for (const bool with_q : {false, true}) {
          if (with_q) input.q = q;
          const acceptance_output out = verify_drafts(input, counts);
          EXPECT_EQ(out.accepted, 0);
          ASSERT_EQ(out.tokens.size(), 1u);
          EXPECT_GE(out.tokens[0], 0);
          EXPECT_LT(out.tokens[0], 3);
        }
      }
    }
  }
}

TEST(verify_drafts, A6_counts_the_drafts_before_a_draft_in_its_penalties) {
  // Token 1 leads by 3; with a frequency penalty of 2 it wins twice, then token 0.
  for (const acceptance_rule rule : kRules) {
    fixed_rows rows{std::vector<std::vector<float>>(5, {0, 3, -9}), {}, {}};
    token_counts counts;
    sampling_params params = greedy();
    params.frequency_penalty = 2.0F;
    const std::vector<token_id> drafts{1, 1, 1, 1};
    const acceptance_output out = verify_drafts(rows.input(params, drafts, rule), counts);
    EXPECT_EQ(out.tokens, (std::vector<token_id>{1, 1, 0}));
    EXPECT_EQ(counts.all().at(1).in_output, 2);
  }
}

TEST(verify_drafts, without_drafts_draws_one_token_the_same_under_both_rules) {
  for (std::uint64_t key = 0; key < 200; ++key) {
    std::vector<token_id> drawn;
    for (const acceptance_rule rule : kRules) {
      fixed_rows rows{{{0.1F, 0.5F, 0.2F}}, {}, {}};
      token_counts counts;
      const sampling_params params;
      const std::vector<token_id> none;
      acceptance_input input = rows.input(params, none, rule);
      input.key = key;
      drawn.push_back(verify_drafts(input, counts).tokens.at(0));
    }
    EXPECT_EQ(drawn[0], drawn[1]);
  }
}

TEST(verify_drafts, survives_rows_and_draft_distributions_of_nan_and_infinities) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{kNan, kInfinity, -kInfinity, 0.0F};
  for (const acceptance_rule rule : kRules) {
    for (const float a : values) {
      for (const float b : values) {
        fixed_rows rows{{{a, b, a}, {b, a, b}}, {}, {}};
        token_counts counts;
        const sampling_params params;
        const std::vector<token_id> drafts{1};
        const std::vector<std::vector<float>> q{{b, a, kNan}};
        acceptance_input input = rows.input(params, drafts, rule);
        input.q = q;
        const acceptance_output out = verify_drafts(input, counts);
        ASSERT_EQ(out.tokens.size(), static_cast<std::size_t>(out.accepted) + 1);
        for (const token_id token : out.tokens) EXPECT_TRUE(token >= 0 && token < 3);
      }
    }
  }
}

}  // namespace
}  // namespace tandem

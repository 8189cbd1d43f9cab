#include "core/speculation/policy.hpp"

#include <gtest/gtest.h>

#include "config/limits.hpp"
#include "tests/core/sources.hpp"

namespace tandem {
namespace {

/// The choice for the first of some equal sequences.
draft_choice choice_of(const speculation_settings& settings, const speculation_params& wanted,
                       std::int32_t sequences = 1, per_method<bool> available = kNgramAndModel) {
  draft_question asked;
  asked.wanted = &wanted;
  asked.decoding = true;
  const std::vector<draft_question> all(static_cast<std::size_t>(sequences), asked);
  step_question question;
  question.sequences = all;
  question.available = available;
  fixed_policy policy(settings);
  const auto choices = policy.choose(question);
  EXPECT_EQ(choices.size(), all.size());
  return choices.front();
}

void expect_choice(const draft_choice& choice, draft_method method, std::int32_t k) {
  EXPECT_EQ(choice.method, method);
  EXPECT_EQ(choice.k, k);
}

TEST(fixed_policy, uses_what_the_server_is_configured_for) {
  const speculation_settings policy{draft_method::ngram, 4, {}};
  const speculation_params none;
  expect_choice(choice_of(policy, none), draft_method::ngram, 4);
}

TEST(fixed_policy, follows_the_request_in_method_and_k) {
  const speculation_settings policy{draft_method::ngram, 4, {}};
  speculation_params wanted;
  wanted.method = draft_method::draft_model;
  wanted.k = 2;
  expect_choice(choice_of(policy, wanted), draft_method::draft_model, 2);
}

TEST(fixed_policy, drafts_the_same_number_for_a_request_that_would_have_it_adaptive) {
  const speculation_settings policy{draft_method::ngram, 4, {}};
  expect_choice(choice_of(policy, {{}, {}, true}), draft_method::ngram, 4);
  expect_choice(choice_of(policy, {{}, 2, true}), draft_method::ngram, 2);
  expect_choice(choice_of(policy, {{}, 2, false}), draft_method::ngram, 2);
}

TEST(fixed_policy, does_not_draft_for_a_request_that_turned_speculation_off) {
  const speculation_settings policy{draft_method::ngram, 4, {}};
  speculation_params wanted;
  wanted.method = draft_method::none;
  wanted.k = 4;
  expect_choice(choice_of(policy, wanted), draft_method::none, 0);
}

TEST(fixed_policy, drafts_nothing_rather_than_with_another_method_than_the_wished_one) {
  const speculation_settings policy{draft_method::ngram, 4, {}};
  speculation_params wanted;
  wanted.method = draft_method::draft_model;
  expect_choice(choice_of(policy, wanted, 1, only({draft_method::ngram})), draft_method::none, 0);
}

TEST(fixed_policy, drafts_nothing_while_the_configured_source_is_dead_or_busy) {
  const speculation_settings policy{draft_method::ngram, 4, {}};
  const speculation_params none;
  expect_choice(choice_of(policy, none, 1, only({draft_method::draft_model})), draft_method::none, 0);
}

TEST(fixed_policy, stops_drafting_above_the_configured_number_of_sequences) {
  const speculation_settings policy{draft_method::ngram, 4, 8};
  const speculation_params none;
  expect_choice(choice_of(policy, none, 8), draft_method::ngram, 4);
  expect_choice(choice_of(policy, none, 9), draft_method::none, 0);
}

TEST(fixed_policy, keeps_k_within_its_bounds) {
  const speculation_settings policy{draft_method::ngram, 4, {}};
  speculation_params wanted;
  wanted.k = 1000;
  EXPECT_EQ(choice_of(policy, wanted).k, limits::kMaxDraftTokens);
  wanted.k = -3;
  expect_choice(choice_of(policy, wanted), draft_method::none, 0);
}

}  // namespace
}  // namespace tandem

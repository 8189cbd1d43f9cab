#include "core/speculation/policy.hpp"

#include <gtest/gtest.h>

#include "config/limits.hpp"

namespace tandem {
namespace {

draft_question asking(const speculation_params& wanted, std::int32_t sequences = 1) {
  draft_question question;
  question.wanted = &wanted;
  question.available = {true, true, true};
  question.sequences = sequences;
  return question;
}

void expect_choice(const draft_choice& choice, draft_method method, std::int32_t k) {
  EXPECT_EQ(choice.method, method);
  EXPECT_EQ(choice.k, k);
}

TEST(fixed_policy, uses_what_the_server_is_configured_for) {
  const fixed_policy policy({draft_method::ngram, 4, {}});
  const speculation_params none;
  expect_choice(policy.choose(asking(none)), draft_method::ngram, 4);
}

TEST(fixed_policy, follows_the_request_in_method_and_k) {
  const fixed_policy policy({draft_method::ngram, 4, {}});
  speculation_params wanted;
  wanted.method = draft_method::draft_model;
  wanted.k = 2;
  expect_choice(policy.choose(asking(wanted)), draft_method::draft_model, 2);
}

TEST(fixed_policy, does_not_draft_for_a_request_that_turned_speculation_off) {
  const fixed_policy policy({draft_method::ngram, 4, {}});
  speculation_params wanted;
  wanted.method = draft_method::none;
  wanted.k = 4;
  expect_choice(policy.choose(asking(wanted)), draft_method::none, 0);
}

TEST(fixed_policy, drafts_nothing_rather_than_with_another_method_than_the_wished_one) {
  const fixed_policy policy({draft_method::ngram, 4, {}});
  speculation_params wanted;
  wanted.method = draft_method::draft_model;
  draft_question question = asking(wanted);
  question.available = {true, true, false};
  expect_choice(policy.choose(question), draft_method::none, 0);
}

TEST(fixed_policy, drafts_nothing_while_the_configured_source_is_dead_or_busy) {
  const fixed_policy policy({draft_method::ngram, 4, {}});
  const speculation_params none;
  draft_question question = asking(none);
  question.available = {true, false, true};
  expect_choice(policy.choose(question), draft_method::none, 0);
}

TEST(fixed_policy, stops_drafting_above_the_configured_number_of_sequences) {
  const fixed_policy policy({draft_method::ngram, 4, 8});
  const speculation_params none;
  expect_choice(policy.choose(asking(none, 8)), draft_method::ngram, 4);
  expect_choice(policy.choose(asking(none, 9)), draft_method::none, 0);
}

TEST(fixed_policy, keeps_k_within_its_bounds) {
  const fixed_policy policy({draft_method::ngram, 4, {}});
  speculation_params wanted;
  wanted.k = 1000;
  EXPECT_EQ(policy.choose(asking(wanted)).k, limits::kMaxDraftTokens);
  wanted.k = -3;
  expect_choice(policy.choose(asking(wanted)), draft_method::none, 0);
}

}  // namespace
}  // namespace tandem

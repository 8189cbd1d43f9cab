// The proof that speculation keeps the target's distribution: the joint of the first three tokens against the exact
// one.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/sampling/distribution.hpp"
#include "core/sampling/noise.hpp"
#include "tests/core/naive_sampling.hpp"
#include "tests/core/toy_chain.hpp"
#include "tests/support/toy_grammar.hpp"

namespace tandem::testing {
namespace {

// Sanitizers look for other faults and are twenty times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSamples = 10'000;
#else
constexpr std::uint64_t kSamples = 200'000;
#endif
constexpr double kLeastP = 1e-4;

double joint_p(const toy_setup& setup, const verify_rule& rule = verify_drafts) {
  const toy_chain chain(setup);
  std::vector<std::int64_t> seen(kToyVocabulary * kToyVocabulary * kToyVocabulary);
  for (std::uint64_t seed = 0; seed < kSamples; ++seed) {
    const std::vector<token_id> t = chain.generate(seed, 3, rule);
    ++seen[(static_cast<std::size_t>(t[0]) * kToyVocabulary + static_cast<std::size_t>(t[1])) * kToyVocabulary +
           static_cast<std::size_t>(t[2])];
  }
  std::vector<double> expected = chain.exact_joint();
  for (double& cell : expected) cell *= static_cast<double>(kSamples);
  return chi_square_p(expected, seen);
}

sampling_params plain() {
  return {};
}
sampling_params top_k_4() {
  sampling_params params;
  params.top_k = 4;
  return params;
}
sampling_params top_p_80() {
  sampling_params params;
  params.top_p = 0.8F;
  return params;
}
sampling_params min_p_10() {
  sampling_params params;
  params.min_p = 0.1F;
  params.temperature = 1.3F;
  return params;
}
sampling_params penalties() {
  sampling_params params;
  params.repetition_penalty = 1.5F;
  params.presence_penalty = 0.7F;
  params.frequency_penalty = -0.5F;
  return params;
}
sampling_params everything() {
  sampling_params params = penalties();
  params.top_k = 6;
  params.top_p = 0.9F;
  params.min_p = 0.02F;
  params.temperature = 0.8F;
  params.logit_bias = {{2, 2.0F}, {5, -100.0F}};
  params.min_tokens = 2;
  params.held_until_min_tokens = {0, 9};
  params.allowed_token_ids = {0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 15};
  return params;
}

/// Two of three tokens may follow, which two depends on all tokens before.
sampling_params with_grammar(sampling_params params) {
  params.structure = std::make_shared<toy_grammar>(static_cast<std::int32_t>(kToyVocabulary),
                                                   [](const std::vector<token_id>& before, token_id next) {
                                                     token_id sum = next;
                                                     for (const token_id token : before) sum += token;
                                                     return sum % 3 != 1;
                                                   });
  return params;
}

struct configuration {
  const char* name;
  sampling_params params;
  draft_kind drafts;
  std::int32_t k;
};

const std::vector<configuration>& configurations() {
  static const std::vector<configuration> all{
      {"k1_poor_plain", plain(), draft_kind::poor, 1},
      {"k1_poor_top_k_4", top_k_4(), draft_kind::poor, 1},
      {"k2_good_plain", plain(), draft_kind::good, 2},
      {"k2_poor_top_p_80", top_p_80(), draft_kind::poor, 2},
      {"k3_adversarial_penalties", penalties(), draft_kind::adversarial, 3},
      {"k4_good_everything", everything(), draft_kind::good, 4},
      {"k5_poor_top_k_4", top_k_4(), draft_kind::poor, 5},
      {"k6_good_min_p", min_p_10(), draft_kind::good, 6},
      {"k7_adversarial_top_p_80", top_p_80(), draft_kind::adversarial, 7},
      {"k8_poor_penalties", penalties(), draft_kind::poor, 8},
      {"k1_poor_grammar", with_grammar(plain()), draft_kind::poor, 1},
      {"k4_good_grammar", with_grammar(plain()), draft_kind::good, 4},
      {"k3_adversarial_grammar_penalties", with_grammar(penalties()), draft_kind::adversarial, 3},
      {"k5_poor_grammar_top_k_4", with_grammar(top_k_4()), draft_kind::poor, 5},
  };
  return all;
}

class A7_joint_of_three_tokens_is_exact : public ::testing::TestWithParam<std::tuple<std::size_t, acceptance_rule>> {};

TEST_P(A7_joint_of_three_tokens_is_exact, chi_square) {
  const configuration& c = configurations()[std::get<0>(GetParam())];
  EXPECT_GT(joint_p({c.params, std::get<1>(GetParam()), c.drafts, c.k}), kLeastP);
}

INSTANTIATE_TEST_SUITE_P(configurations, A7_joint_of_three_tokens_is_exact,
                         ::testing::Combine(::testing::Range(std::size_t{0}, configurations().size()),
                                            ::testing::Values(acceptance_rule::coupled, acceptance_rule::rejection)),
                         [](const auto& spec) {
                           const bool coupled = std::get<1>(spec.param) == acceptance_rule::coupled;
                           return std::string(coupled ? "coupled_" : "rejection_") +
                                  configurations()[std::get<0>(spec.param)].name;
                         });

// --- the test of the test: rules that are wrong must fail it ---

acceptance_output accept_always(const acceptance_input& input, token_counts& counts) {
  acceptance_output out;
  for (const token_id draft : input.drafts) {
    out.tokens.push_back(draft);
    counts.add_output(draft);
  }
  out.accepted = static_cast<std::int32_t>(out.tokens.size());
  const token_id bonus =
      draw_coupled(input.logits(out.accepted), *input.params, input.key, input.position + out.accepted);
  out.tokens.push_back(bonus);
  counts.add_output(bonus);
  return out;
}

// Accepts as it should, but after a rejection draws from p instead of max(0, p - q).
acceptance_output residual_without_q(const acceptance_input& input, token_counts& counts) {
  acceptance_output out = verify_drafts(input, counts);
  if (static_cast<std::size_t>(out.accepted) == input.drafts.size()) return out;
  counts.remove_output(out.tokens.back());
  out.tokens.back() = draw_coupled(input.logits(out.accepted), *input.params, input.key, input.position + out.accepted);
  counts.add_output(out.tokens.back());
  return out;
}

TEST(exactness_canary, accepting_every_draft_fails_the_same_test) {
  EXPECT_LT(joint_p({plain(), acceptance_rule::rejection, draft_kind::good, 2}, accept_always), 1e-12);
}

TEST(exactness_canary, a_residual_that_forgets_q_fails_the_same_test) {
  EXPECT_LT(joint_p({plain(), acceptance_rule::rejection, draft_kind::poor, 1}, residual_without_q), 1e-12);
}

// The draft that cannot follow is left out, as if the source had proposed less.
acceptance_output cut_too_early(const acceptance_input& input, token_counts& counts) {
  acceptance_input cut = input;
  if (cut.last_draft_impossible) cut.drafts = cut.drafts.first(cut.drafts.size() - 1);
  if (!cut.q.empty()) cut.q = cut.q.first(cut.drafts.size());
  cut.last_draft_impossible = false;
  return verify_drafts(cut, counts);
}

TEST(exactness_canary, leaving_out_the_draft_that_a_grammar_refuses_fails_the_same_test) {
  EXPECT_LT(joint_p({with_grammar(plain()), acceptance_rule::rejection, draft_kind::poor, 1}, cut_too_early), 1e-12);
}

// --- coupled: not only the distribution, the very tokens ---

TEST(coupled_rule, A6_gives_the_tokens_of_decoding_without_drafts_for_every_seed) {
  constexpr std::size_t kTokens = 24;
  for (const configuration& c : configurations()) {
    const toy_chain alone({c.params, acceptance_rule::coupled, c.drafts, 0});
    for (std::int32_t k = 1; k <= 8; ++k) {
      const toy_chain speculating({c.params, acceptance_rule::coupled, c.drafts, k});
      for (std::uint64_t seed = 0; seed < 60; ++seed) {
        std::vector<token_id> tokens = speculating.generate(seed, kTokens);
        tokens.resize(kTokens);
        ASSERT_EQ(tokens, alone.generate(seed, kTokens)) << c.name << " k " << k << " seed " << seed;
      }
    }
  }
}

TEST(greedy_decoding, A8_is_the_same_under_both_rules_and_without_drafts) {
  for (configuration c : configurations()) {
    c.params.temperature = 0.0F;
    const std::vector<token_id> expected = toy_chain({c.params, acceptance_rule::coupled, c.drafts, 0}).generate(1, 40);
    for (const acceptance_rule rule : {acceptance_rule::coupled, acceptance_rule::rejection}) {
      std::vector<token_id> tokens = toy_chain({c.params, rule, c.drafts, c.k}).generate(1, 40);
      tokens.resize(40);
      EXPECT_EQ(tokens, expected) << c.name;
    }
  }
}

}  // namespace
}  // namespace tandem::testing

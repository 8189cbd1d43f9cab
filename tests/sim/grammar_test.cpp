// Sequences with a grammar in the simulation: whatever they go through, the grammar stands where their output does.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/sim/expectations.hpp"
#include "tests/support/toy_grammar.hpp"

namespace tandem::sim {
namespace {

constexpr token_id kEnd = 7;

/// Which tokens may follow depends on all tokens before; the end does behind `length` tokens, and then nothing else.
std::shared_ptr<const grammar> ending_behind(std::size_t length) {
  const auto rule = [length](const std::vector<token_id>& before, token_id next) {
    if (before.size() == length) return next == kEnd;
    token_id sum = next;
    for (const token_id token : before) sum += token;
    return next != kEnd && sum % 4 == 1;
  };
  return std::make_shared<testing::toy_grammar>(kVocabulary, rule, kEnd);
}

class Grammars : public ::testing::TestWithParam<draft_method> {};

TEST_P(Grammars, AreFollowedThroughDraftsPreemptionAndLostDrafters) {
  std::int32_t preemptions = 0;
  std::int32_t accepted = 0;
  std::int32_t rejected = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    engine_options options;
    options.method = GetParam();
    options.k = 4;
    options.num_blocks = static_cast<std::int32_t>(14 + seed % 12);  // few: not all fit at once
    options.max_num_seqs = 5;
    options.max_model_len = 48;
    options.end_tokens = {kEnd};
    options.expire_tickets = seed % 3 == 0 ? 0.2 : 0.0;
    options.independent_streams = seed % 2 == 1;
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    std::vector<std::pair<sequence_id, job>> jobs;
    for (int i = 0; i < 7; ++i) {
      job wanted{.prompt = random_prompt(random, 4 + static_cast<std::int32_t>(random() % 12)), .max_tokens = 30};
      wanted.structure = ending_behind(random() % 25);
      jobs.emplace_back(engine.submit(wanted), wanted);
      for (auto moves = random() % 30; moves > 0 && engine.deliver_one(); --moves) {
      }
      if (GetParam() != draft_method::none && i == 3) engine.kill_drafter(GetParam());
    }
    engine.run_until_idle();
    expect_idle(engine, options);
    for (const auto& [id, wanted] : jobs) {
      const client_view& view = engine.view(id);
      std::vector<token_id> expected = oracle(wanted.prompt, wanted.max_tokens, wanted.structure.get());
      expected.erase(std::find(expected.begin(), expected.end(), kEnd) + 1, expected.end());
      EXPECT_EQ(view.tokens, expected) << seed;
      EXPECT_EQ(view.end->reason, finish_reason::stop) << seed;
      preemptions += view.stats.preemptions;
      accepted += view.stats.accepted_tokens;
      rejected += view.stats.draft_tokens - view.stats.accepted_tokens;
    }
  }
  EXPECT_GT(preemptions, 0);
  if (GetParam() == draft_method::none) return;
  EXPECT_GT(rejected, 0);
  if (GetParam() == draft_method::draft_model) {
    EXPECT_GT(accepted, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(With, Grammars,
                         ::testing::Values(draft_method::none, draft_method::ngram, draft_method::suffix,
                                           draft_method::draft_model),
                         [](const auto& method) { return "method" + std::to_string(static_cast<int>(method.param)); });

TEST(StuckGrammars, WhereNothingCanFollowTheSequenceEndsAndItsNeighboursDoNot) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    engine_options options;
    options.method = seed % 2 == 0 ? draft_method::none : draft_method::draft_model;
    options.k = 3;
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    job narrow{.prompt = random_prompt(random, 6), .max_tokens = 20};
    const std::size_t length = random() % 6;
    narrow.structure = std::make_shared<testing::toy_grammar>(
        kVocabulary, [length](const auto& before, token_id) { return before.size() < length; });
    const job plain{.prompt = random_prompt(random, 9), .max_tokens = 12};
    const sequence_id stuck = engine.submit(narrow);
    const sequence_id free = engine.submit(plain);
    engine.run_until_idle();
    expect_idle(engine, options);
    expect_oracle(engine, free, plain);
    const client_view& view = engine.view(stuck);
    EXPECT_EQ(view.tokens, oracle(narrow.prompt, 20, narrow.structure.get()));
    EXPECT_EQ(view.tokens.size(), length);
    EXPECT_EQ(view.end->reason, finish_reason::error);
    EXPECT_EQ(view.end->code, error_code::invalid_argument);
    EXPECT_EQ(view.stats.completion_tokens, static_cast<std::int32_t>(length));
  }
}

}  // namespace
}  // namespace tandem::sim

// Two sources for a sequence in one step: the second drafts only where the first has nothing, whatever befalls them.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/sim/expectations.hpp"
#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

TEST(Cascade, AnyChoiceOfSourcesGivesTheOraclesTokens) {
  std::uint64_t called_off = 0;
  std::int64_t preemptions = 0;
  std::map<draft_method, std::int64_t> accepted;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed * 31 + 7);
    engine_options options;
    options.any_choice = true;
    options.k = 5;
    options.num_blocks = static_cast<std::int32_t>(14 + random() % 30);
    options.max_model_len = 48;
    options.max_num_batched_tokens = static_cast<std::int32_t>(2 + random() % 40);
    options.max_num_seqs = static_cast<std::int32_t>(1 + random() % 8);
    options.draft_context_limit = static_cast<std::int32_t>(20 + random() % 30);
    options.expire_tickets = seed % 2 == 0 ? 0.0 : 0.05;
    options.independent_streams = seed % 3 == 0;
    simulated_engine engine(options, seed);
    std::map<sequence_id, job> jobs;
    for (int i = 0; i < 16; ++i) {
      const job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 20)),
                       .max_tokens = static_cast<std::int32_t>(1 + random() % 27)};
      jobs[engine.submit(wanted)] = wanted;
      for (std::uint64_t n = random() % 40; n > 0; --n) engine.deliver_one();
      if (random() % 12 == 0) engine.kill_drafter(draft_method::ngram);
      if (random() % 12 == 0) engine.kill_drafter(draft_method::draft_model);
      if (random() % 20 == 0) engine.kill_allocator();
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) {
      expect_oracle(engine, id, wanted);
      const sequence_stats& stats = engine.view(id).stats;
      preemptions += stats.preemptions;
      std::int32_t drafted = 0;
      for (std::size_t method = 0; method < kDraftMethods; ++method) {
        accepted[static_cast<draft_method>(method)] += stats.by_method[method].accepted_tokens;
        drafted += stats.by_method[method].draft_tokens;
      }
      EXPECT_EQ(drafted, stats.draft_tokens);
    }
    expect_idle(engine, options);
    called_off += engine.called_off();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(called_off, 100U);
  EXPECT_GT(preemptions, 100);
  for (const draft_method method : {draft_method::ngram, draft_method::draft_model, draft_method::eagle})
    EXPECT_GT(accepted[method], 10) << static_cast<int>(method);
}

/// A draft model that is always right, behind a lookup: what the lookup offers is verified alone, the rest comes from
/// the model, which keeps up whatever the lookup took over.
TEST(Cascade, A13_TheModelBehindALookupStaysRight) {
  std::int32_t by_model = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    engine_options options;
    options.any_choice = true;
    options.k = 4;
    options.draft_wrong_every = 0;
    simulated_engine engine(options, seed);
    const job wanted{.prompt = {3, 1, 4, 1, 5, 9, 2, 6}, .max_tokens = 100};
    const sequence_id id = engine.submit(wanted);
    engine.run_until_idle();
    expect_oracle(engine, id, wanted);
    const sequence_stats& stats = engine.view(id).stats;
    for (const draft_method method : {draft_method::draft_model, draft_method::eagle}) {
      const auto& of = stats.by_method[index_of(method)];
      EXPECT_GE(of.accepted_tokens, of.draft_tokens - options.k) << seed;  // the last run may be cut by the end
      by_model += of.accepted_tokens;
    }
  }
  EXPECT_GT(by_model, 1000);
}

}  // namespace
}  // namespace tandem::sim

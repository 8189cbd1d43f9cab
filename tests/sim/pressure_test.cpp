// A15: few blocks, cancels, priorities and dying actors: whoever survives has the oracle's answer, and nothing leaks.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/sim/expectations.hpp"
#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

TEST(Scheduler, A15_SurvivesCancelsKillsAndExpiryUnderPressure) {
  std::uint64_t steps = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed * 77 + 5);
    engine_options options;
    options.num_blocks = static_cast<std::int32_t>(12 + random() % 30);
    options.max_model_len = 40;
    options.max_num_batched_tokens = static_cast<std::int32_t>(1 + random() % 40);
    options.max_num_seqs = static_cast<std::int32_t>(1 + random() % 12);
    options.priority_policy = seed % 3 == 0;
    options.method = seed % 2 == 0 ? draft_method::draft_model : draft_method::ngram;
    options.k = 5;
    options.expire_tickets = 0.05;
    options.independent_streams = seed % 5 < 2;
    simulated_engine engine(options, seed);
    std::map<sequence_id, job> jobs;
    std::vector<sequence_id> ids;
    std::set<sequence_id> cancelled;
    for (int i = 0; i < 30; ++i) {
      job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 20)),
                 .max_tokens = static_cast<std::int32_t>(1 + random() % 20),
                 .priority = static_cast<std::int32_t>(random() % 7) - 3};
      // Both sources in one step: blocks must wait for the one that writes them.
      if (i % 3 == 0) wanted.speculation.method = draft_method::ngram;
      if (i % 3 == 1) wanted.speculation.method = draft_method::draft_model;
      if (i % 5 == 4) wanted.speculation.method = draft_method::suffix;
      ids.push_back(engine.submit(wanted));
      jobs[ids.back()] = wanted;
      for (std::uint64_t n = random() % 30; n > 0; --n) engine.deliver_one();
      if (random() % 4 == 0) {
        const auto victim = ids[random() % ids.size()];
        engine.cancel(victim);
        cancelled.insert(victim);
      }
      if (random() % 8 == 0) engine.kill_drafter(options.method);
      if (random() % 16 == 0) engine.kill_drafter(draft_method::suffix);
      if (random() % 12 == 0) engine.kill_allocator();
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) {
      const auto expected = oracle(wanted.prompt, wanted.max_tokens);
      const auto& got = engine.view(id).tokens;
      ASSERT_LE(got.size(), expected.size());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin()));
      if (!cancelled.contains(id)) {
        EXPECT_EQ(got.size(), expected.size());
      }
    }
    expect_idle(engine, options);
    steps += engine.steps_run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(steps, 10'000U);
}

/// The recipe to the letter: 2,000 rounds of twelve, fewer blocks than they need, priorities, cancels; the second time
/// with a step budget below 12 · (k + 1), so that some are skipped in a step without being preempted.
TEST(Scheduler, A15_TwoThousandRoundsOfTwelveWithAndWithoutRoomForAllInAStep) {
  constexpr int kTogether = 12;
  const draft_method methods[] = {draft_method::draft_model, draft_method::ngram, draft_method::suffix};
  for (const std::int32_t budget : {kTogether * 6, kTogether * 6 / 2, 7}) {
    engine_options options;
    options.num_blocks = 20;
    options.max_model_len = 48;
    options.max_num_seqs = kTogether;
    options.max_num_batched_tokens = budget;
    options.priority_policy = true;
    options.k = 5;
    std::mt19937_64 random(static_cast<std::uint64_t>(budget));
    std::int64_t preemptions = 0;
    for (int round = 0; round < 2'000; ++round) {
      options.method = methods[round % 3];
      options.independent_streams = round % 2 == 1;
      simulated_engine engine(options, static_cast<std::uint64_t>(round));
      std::map<sequence_id, job> jobs;
      std::set<sequence_id> cancelled;
      for (int i = 0; i < kTogether; ++i) {
        const job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 24)),
                         .max_tokens = static_cast<std::int32_t>(1 + random() % 24),
                         .priority = static_cast<std::int32_t>(random() % 5) - 2};
        const sequence_id id = engine.submit(wanted);
        jobs[id] = wanted;
        for (std::uint64_t n = random() % 20; n > 0; --n) engine.deliver_one();
        if (random() % 6 == 0) cancelled.insert(id);
        if (random() % 6 == 0 && !cancelled.empty()) engine.cancel(*cancelled.begin());
      }
      for (const sequence_id id : cancelled) engine.cancel(id);
      engine.run_until_idle();
      for (const auto& [id, wanted] : jobs) {
        preemptions += engine.view(id).stats.preemptions;
        const auto expected = oracle(wanted.prompt, wanted.max_tokens);
        const auto& got = engine.view(id).tokens;
        ASSERT_TRUE(got.size() <= expected.size() && std::equal(got.begin(), got.end(), expected.begin()));
        if (!cancelled.contains(id)) {
          ASSERT_EQ(got.size(), expected.size());
        }
      }
      expect_idle(engine, options);
      ASSERT_FALSE(testing::Test::HasFailure()) << "budget " << budget << " round " << round;
    }
    EXPECT_GT(preemptions, 500) << budget;
  }
}

}  // namespace
}  // namespace tandem::sim

// The pure scheduler against the shadow model: any schedule must give the oracle's answer.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

#include "config/limits.hpp"
#include "tests/sim/expectations.hpp"
#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

TEST(Scheduler, AnswersOnePromptOfEveryLengthAroundBlockBoundaries) {
  engine_options options;
  std::mt19937_64 random(1);
  for (std::int32_t length = 1; length <= 3 * options.block_size + 2; ++length) {
    simulated_engine engine(options, 1);
    const job wanted{.prompt = random_prompt(random, length), .max_tokens = 10};
    const auto id = engine.submit(wanted);
    engine.run_until_idle();
    expect_oracle(engine, id, wanted);
    expect_idle(engine, options);
  }
}

TEST(Scheduler, GivesTheSameAnswerForAnyBudgetMethodAndOrderOfMessages) {
  const draft_method methods[] = {draft_method::none, draft_method::ngram, draft_method::draft_model,
                                  draft_method::suffix};
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937_64 random(seed);
    engine_options options;
    const std::int32_t budgets[] = {1, 2, 3, 4, 5, 7, 16, 32, 64};
    options.max_num_batched_tokens = budgets[seed % 9];
    options.method = methods[seed % 4];
    options.k = options.method == draft_method::none ? 0 : static_cast<std::int32_t>(1 + random() % 8);
    options.adaptive = seed % 7 < 2;
    options.draft_wrong_every = random() % 4;
    options.expire_tickets = seed % 5 == 0 ? 0.3 : 0.0;
    options.prefix_caching = seed % 4 != 3;
    options.independent_streams = seed % 2 == 1;
    simulated_engine engine(options, seed);
    std::vector<std::pair<sequence_id, job>> jobs;
    const auto shared = random_prompt(random, 17);
    for (int i = 0; i < 12; ++i) {
      job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 40)),
                 .max_tokens = static_cast<std::int32_t>(1 + random() % 30)};
      if (i % 3 == 0) wanted.prompt.insert(wanted.prompt.begin(), shared.begin(), shared.end());
      jobs.emplace_back(engine.submit(wanted), wanted);
      for (std::uint64_t n = random() % 40; n > 0; --n) engine.deliver_one();
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) expect_oracle(engine, id, wanted);
    EXPECT_LE(engine.largest_step(), options.max_num_batched_tokens);
    expect_idle(engine, options);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(Scheduler, B4_PreemptsTheYoungestAndEveryoneFinishesUnchanged) {
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    std::mt19937_64 random(seed);
    engine_options options;
    options.num_blocks = 14;
    options.max_model_len = 48;
    options.max_num_batched_tokens = 16;
    options.method = seed % 2 == 0 ? draft_method::draft_model : draft_method::ngram;
    options.k = 5;
    simulated_engine engine(options, seed);
    std::vector<std::pair<sequence_id, job>> jobs;
    for (int i = 0; i < 20; ++i) {
      const job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 24)),
                       .max_tokens = static_cast<std::int32_t>(1 + random() % 24)};
      jobs.emplace_back(engine.submit(wanted), wanted);
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) {
      expect_oracle(engine, id, wanted);
      EXPECT_LT(engine.view(id).stats.preemptions, 10);
      preemptions += engine.view(id).stats.preemptions;
    }
    expect_idle(engine, options);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(preemptions, 0);
}

TEST(Scheduler, ADrafterThatNeverComesBackHoldsNoBlocks) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    engine_options options;
    options.num_blocks = 14;
    options.max_model_len = 48;
    options.method = draft_method::draft_model;
    options.k = 5;
    options.independent_streams = seed % 2 == 0;
    simulated_engine engine(options, seed);
    std::vector<std::pair<sequence_id, job>> jobs;
    for (int i = 0; i < 12; ++i) {
      const job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 24)), .max_tokens = 20};
      jobs.emplace_back(engine.submit(wanted), wanted);
    }
    for (std::uint64_t n = random() % 400; n > 0; --n) engine.deliver_one();
    engine.kill_drafter(options.method, false);
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) expect_oracle(engine, id, wanted);
    expect_idle(engine, options);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(Scheduler, TheAdaptivePolicyChangesNoAnswerUnderPressureAndDrafts) {
  std::int64_t drafted = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed * 31 + 2);
    engine_options options;
    options.adaptive = true;
    options.k = limits::kMaxDraftTokens;
    options.num_blocks = static_cast<std::int32_t>(24 + random() % 60);
    options.max_model_len = 80;
    options.max_num_batched_tokens = static_cast<std::int32_t>(4 + random() % 60);
    options.max_num_seqs = static_cast<std::int32_t>(1 + random() % 12);
    options.draft_wrong_every = random() % 3 == 0 ? 1 : 5;
    options.expire_tickets = seed % 4 == 0 ? 0.05 : 0.0;
    options.independent_streams = seed % 2 == 1;
    simulated_engine engine(options, seed);
    std::vector<std::pair<sequence_id, job>> jobs;
    for (int i = 0; i < 12; ++i) {
      job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 24)),
                 .max_tokens = static_cast<std::int32_t>(20 + random() % 30)};
      if (i % 4 == 1) wanted.speculation = {std::nullopt, 2, false};
      if (i % 4 == 2) wanted.speculation = {draft_method::ngram, 3, true};
      if (i % 4 == 3 && i > 6) wanted.speculation.method = draft_method::none;
      jobs.emplace_back(engine.submit(wanted), wanted);
      for (std::uint64_t n = random() % 60; n > 0; --n) engine.deliver_one();
    }
    if (seed % 5 == 0) engine.kill_drafter(draft_method::draft_model);
    if (seed % 5 == 1) engine.kill_drafter(draft_method::ngram);
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) {
      expect_oracle(engine, id, wanted);
      drafted += engine.view(id).stats.draft_tokens;
      if (wanted.speculation.method == draft_method::none) {
        EXPECT_EQ(engine.view(id).stats.draft_tokens, 0);
      }
    }
    EXPECT_LE(engine.largest_step(), options.max_num_batched_tokens);
    expect_idle(engine, options);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(drafted, 5'000);
}

TEST(Scheduler, CountsDraftsByMethodAndPlaceAsInTheWhole) {
  engine_options options;
  options.method = draft_method::draft_model;
  options.k = 8;
  options.draft_wrong_every = 3;
  simulated_engine engine(options, 11);
  std::mt19937_64 random(12);
  const auto id = engine.submit({.prompt = random_prompt(random, 20), .max_tokens = 90});
  engine.run_until_idle();
  const sequence_stats& stats = engine.view(id).stats;
  std::int32_t drafted = 0;
  std::int32_t accepted = 0;
  for (const auto& method : stats.by_method) {
    drafted += method.draft_tokens;
    accepted += method.accepted_tokens;
    EXPECT_EQ(std::accumulate(method.accepted_at.begin(), method.accepted_at.end(), 0), method.accepted_tokens);
    EXPECT_LE(method.accepted_at[0], method.runs);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_EQ(drafted, stats.draft_tokens);
  EXPECT_EQ(accepted, stats.accepted_tokens);
}

TEST(Scheduler, A13_SelfDraftingAcceptsEverythingColdAfterAPrefixHitAndAfterPreemption) {
  for (std::int32_t k = 1; k <= 8; ++k) {
    engine_options options;
    options.max_model_len = 256;
    options.draft_context_limit = 256;
    options.num_blocks = 128;
    options.method = draft_method::draft_model;
    options.k = k;
    options.draft_wrong_every = 0;
    simulated_engine engine(options, static_cast<std::uint64_t>(k));
    std::mt19937_64 random(9);
    const job wanted{.prompt = random_prompt(random, 10 * options.block_size + 3), .max_tokens = 100};
    for (int round = 0; round < 3; ++round) {
      const auto id = engine.submit(wanted);
      engine.run_until_idle();
      expect_oracle(engine, id, wanted);
      const auto& stats = engine.view(id).stats;
      EXPECT_EQ(stats.accepted_tokens, stats.draft_tokens) << "k " << k << " round " << round;
      // Two steps of slack: the source may still be taking in the prompt when the first tokens are decoded.
      EXPECT_LE(stats.steps, 3 + (99 + k) / (k + 1)) << "k " << k << " round " << round;
      EXPECT_EQ(stats.cached_tokens, round == 0 ? 0 : 10 * options.block_size);
    }
  }
}

TEST(Scheduler, A14_DraftCatchesUpAfterAPhaseWithoutDrafts) {
  engine_options options;
  options.method = draft_method::draft_model;
  options.k = 4;
  options.draft_wrong_every = 0;
  simulated_engine engine(options, 3);
  std::mt19937_64 random(4);
  job plain{.prompt = random_prompt(random, 30), .max_tokens = 20};
  plain.speculation.method = draft_method::none;
  const auto first = engine.submit(plain);
  engine.run_until_idle();
  EXPECT_EQ(engine.view(first).stats.draft_tokens, 0);
  job drafted = plain;  // the target's prefix is cached, the draft's is not
  drafted.speculation.method.reset();
  const auto second = engine.submit(drafted);
  engine.run_until_idle();
  expect_oracle(engine, second, drafted);
  const auto& stats = engine.view(second).stats;
  EXPECT_GT(stats.cached_tokens, 0);
  EXPECT_GT(stats.draft_tokens, 0);
  EXPECT_EQ(stats.accepted_tokens, stats.draft_tokens);
}

TEST(Scheduler, A3_CommitsExactlyMaxTokensForEveryK) {
  for (std::int32_t k = 1; k <= 8; ++k) {
    for (std::int32_t max_tokens = 1; max_tokens <= 20; ++max_tokens) {
      engine_options options;
      options.method = draft_method::draft_model;
      options.k = k;
      options.draft_wrong_every = 0;
      simulated_engine engine(options, 5);
      const job wanted{.prompt = {1, 2, 3}, .max_tokens = max_tokens};
      const auto id = engine.submit(wanted);
      engine.run_until_idle();
      expect_oracle(engine, id, wanted);
      EXPECT_LE(engine.view(id).stats.accepted_tokens, engine.view(id).stats.draft_tokens);
    }
  }
}

TEST(Scheduler, A10_StopsDraftingAtTheDraftsContextAndGoesOn) {
  for (const std::int32_t length : {1, 30, 31, 32, 33, 60}) {
    engine_options options;
    options.method = draft_method::draft_model;
    options.k = 5;
    options.draft_wrong_every = 0;
    options.draft_context_limit = 32;
    simulated_engine engine(options, 6);
    std::mt19937_64 random(7);
    const job wanted{.prompt = random_prompt(random, length), .max_tokens = 40};
    const auto id = engine.submit(wanted);
    engine.run_until_idle();
    expect_oracle(engine, id, wanted);
    if (length > 32) {
      EXPECT_EQ(engine.view(id).stats.draft_tokens, 0);
    }
    EXPECT_LE(engine.view(id).stats.draft_tokens, std::max(0, 32 - length + 2));
  }
}

TEST(Scheduler, A12_ADraftModelIsToldOnlyIdsItHasAndChangesNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    engine_options options;
    options.method = draft_method::draft_model;
    options.k = 4;
    options.draft_vocabulary = kVocabulary / 2;  // run_drafter checks it
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    std::vector<std::pair<sequence_id, job>> asked;
    for (int i = 0; i < 5; ++i) {
      const job wanted{.prompt = random_prompt(random, 1 + static_cast<std::int32_t>(random() % 20)), .max_tokens = 30};
      asked.emplace_back(engine.submit(wanted), wanted);
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : asked) {
      expect_oracle(engine, id, wanted);
      EXPECT_GT(engine.view(id).stats.draft_tokens, 0);
    }
  }
}

TEST(Scheduler, A1_EndsAtAStopStringThatCompletesAnywhereInARun) {
  static std::vector<std::string> text;
  text.clear();
  for (int i = 0; i < kVocabulary; ++i) text.push_back("<" + std::to_string(i) + ">");
  const std::vector<token_id> prompt{4, 8, 15};
  const auto expected = oracle(prompt, 24);
  for (std::size_t j = 1; j < 12; ++j) {
    std::string stop = text[static_cast<std::size_t>(expected[j - 1])] + text[static_cast<std::size_t>(expected[j])];
    stop = stop.substr(1, stop.size() - 2);  // starts and ends inside tokens
    std::string joined;
    for (const token_id token : expected) joined += text[static_cast<std::size_t>(token)];
    const std::size_t at = joined.find(stop);
    for (const std::int32_t k : {0, 1, 3, 8}) {
      engine_options options;
      options.method = k == 0 ? draft_method::none : draft_method::draft_model;
      options.k = k;
      options.draft_wrong_every = 0;
      options.token_bytes = [](token_id id, bool) -> std::string_view { return text[static_cast<std::size_t>(id)]; };
      simulated_engine engine(options, j);
      job wanted{.prompt = prompt, .max_tokens = 24};
      wanted.stopping.stop = {stop};
      const auto id = engine.submit(wanted);
      engine.run_until_idle();
      const auto& view = engine.view(id);
      ASSERT_TRUE(view.end.has_value());
      EXPECT_EQ(view.end->reason, finish_reason::stop);
      EXPECT_EQ(view.end->stop_string, stop);
      EXPECT_EQ(view.end->text_bytes, at);
      std::string got;
      for (const token_id token : view.tokens) got += text[static_cast<std::size_t>(token)];
      EXPECT_GE(got.size(), at + stop.size());
      EXPECT_LT(got.size() - text[static_cast<std::size_t>(view.tokens.back())].size(), at + stop.size());
    }
  }
}

TEST(Scheduler, A4_EndsAtTheEndTokenUnlessItIsIgnored) {
  const std::vector<token_id> prompt{7, 7, 7};
  const auto expected = oracle(prompt, 16);
  for (const bool ignore : {false, true}) {
    for (const std::int32_t k : {0, 2, 6}) {
      engine_options options;
      options.method = k == 0 ? draft_method::none : draft_method::draft_model;
      options.k = k;
      options.end_tokens = {expected[5]};
      simulated_engine engine(options, 11);
      job wanted{.prompt = prompt, .max_tokens = 16};
      wanted.stopping.ignore_eos = ignore;
      const auto id = engine.submit(wanted);
      engine.run_until_idle();
      const auto first = std::find(expected.begin(), expected.end(), expected[5]) - expected.begin();
      const auto length = ignore ? 16 : first + 1;
      EXPECT_EQ(engine.view(id).tokens, std::vector<token_id>(expected.begin(), expected.begin() + length));
      EXPECT_EQ(engine.view(id).end->reason, ignore ? finish_reason::length : finish_reason::stop);
    }
  }
}

TEST(Scheduler, WithoutChunkingAPreemptedSequenceLongerThanAStepStillEnds) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    engine_options options;
    options.chunked_prefill = false;
    options.max_num_batched_tokens = 8;
    options.num_blocks = 10;  // 40 tokens: two sequences of 2 + 30 do not fit together
    options.max_model_len = 36;
    options.prefix_caching = seed % 2 == 0;
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    std::map<sequence_id, job> jobs;
    for (int i = 0; i < 4; ++i) {
      const job wanted{.prompt = random_prompt(random, 2), .max_tokens = 30};
      jobs[engine.submit(wanted)] = wanted;
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) expect_oracle(engine, id, wanted);
    EXPECT_LE(engine.largest_step(), options.max_num_batched_tokens);
    expect_idle(engine, options);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(Scheduler, ADeviceErrorEndsOnlyWhatWasOnTheStep) {
  engine_options options;
  options.fail_steps = 0.05;
  simulated_engine engine(options, 13);
  std::mt19937_64 random(13);
  std::map<sequence_id, job> jobs;
  for (int i = 0; i < 60; ++i) {
    const job wanted{.prompt = random_prompt(random, 6), .max_tokens = 6};
    jobs[engine.submit(wanted)] = wanted;
    for (int n = 0; n < 40; ++n) engine.deliver_one();
  }
  engine.run_until_idle();
  int failed = 0;
  for (const auto& [id, wanted] : jobs) {
    if (engine.view(id).end->reason == finish_reason::error) {
      ++failed;
      EXPECT_EQ(engine.view(id).end->message, "the simulated device failed");
    } else {
      expect_oracle(engine, id, wanted);
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 60);
  expect_idle(engine, options);
}

TEST(Scheduler, B9_TheMoreUrgentGoesFirstAndEqualRanksKeepArrivalOrder) {
  engine_options options;
  options.priority_policy = true;
  options.max_num_seqs = 1;
  simulated_engine engine(options, 17);
  std::vector<sequence_id> ids;
  const std::int32_t priorities[] = {
      3, -2, 3, std::numeric_limits<std::int32_t>::min(), 0, std::numeric_limits<std::int32_t>::max()};
  for (const std::int32_t priority : priorities) {
    ids.push_back(engine.submit({.prompt = {1, 2}, .max_tokens = 3, .priority = priority}));
  }
  std::vector<sequence_id> order;
  while (engine.deliver_one()) {
    for (const auto id : ids) {
      if (engine.view(id).end && std::find(order.begin(), order.end(), id) == order.end()) order.push_back(id);
    }
  }
  // The first to arrive was already running when the others came.
  const std::vector<sequence_id> tail(order.begin() + 1, order.end());
  std::vector<sequence_id> expected{ids[3], ids[1], ids[4], ids[0], ids[2], ids[5]};
  std::erase(expected, order.front());
  EXPECT_EQ(tail, expected);
}

}  // namespace
}  // namespace tandem::sim

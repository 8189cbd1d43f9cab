// n choices of one prompt: computed once, shared by holds on its blocks, whatever happens to the choice that leads.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/sim/expectations.hpp"
#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

sequence_id choice(sequence_id first, std::int32_t number) {
  return {first.request, number};
}

void expect_oracle_of_all(const simulated_engine& engine, sequence_id first, const job& wanted) {
  for (std::int32_t i = 0; i < wanted.n; ++i) expect_oracle(engine, choice(first, i), wanted);
}

/// Rows that n choices may compute of a prompt when nobody else had it: all of it once, and each further one its tail.
std::int64_t most_prompt_rows(const job& wanted, const engine_options& options) {
  const auto length = static_cast<std::int64_t>(wanted.prompt.size());
  const std::int64_t shared = (length - 1) / options.block_size * options.block_size;
  return length + (wanted.n - 1) * (length - shared);
}

TEST(Choices, ComputeTheirPromptOnceAtEveryLengthWithAndWithoutPrefixCaching) {
  for (std::int32_t length = 1; length <= 40; ++length) {
    for (const bool caching : {true, false}) {
      engine_options options;
      options.prefix_caching = caching;
      options.max_num_batched_tokens = length % 3 == 0 ? 7 : 32;
      simulated_engine engine(options, static_cast<std::uint64_t>(length));
      std::mt19937_64 random(static_cast<std::uint64_t>(length));
      const job wanted{.prompt = random_prompt(random, length), .max_tokens = 10, .n = 5};
      const auto first = engine.submit(wanted);
      engine.run_until_idle();
      expect_oracle_of_all(engine, first, wanted);
      EXPECT_EQ(engine.prompt_rows(), most_prompt_rows(wanted, options)) << length << caching;
      expect_idle(engine, options);
    }
  }
}

TEST(Choices, CountTheBlocksThatTheyShareOnce) {
  for (const bool caching : {true, false}) {
    engine_options options;
    options.prefix_caching = caching;
    options.num_blocks = 64;
    simulated_engine engine(options, 7);
    std::mt19937_64 random(7);
    const job wanted{.prompt = random_prompt(random, 8 * options.block_size + 1), .max_tokens = 3, .n = 5};
    engine.submit(wanted);
    std::int32_t most = 0;
    while (engine.deliver_one()) most = std::max(most, engine.status().blocks_used);
    EXPECT_EQ(most, 8 + wanted.n) << caching;  // the prompt's once, and each choice's own last one
    expect_idle(engine, options);
  }
}

TEST(Choices, ComputeTheirPromptOnceAlsoWhenTheFirstOneEndsInTheStepThatEndsThePrompt) {
  for (const bool caching : {true, false}) {
    engine_options options;
    options.prefix_caching = caching;
    options.max_num_seqs = 1;  // one after the other: nobody runs when the next one starts
    simulated_engine engine(options, 3);
    std::mt19937_64 random(3);
    const job wanted{.prompt = random_prompt(random, 30), .max_tokens = 1, .n = 6};
    const auto first = engine.submit(wanted);
    engine.run_until_idle();
    expect_oracle_of_all(engine, first, wanted);
    EXPECT_EQ(engine.prompt_rows(), most_prompt_rows(wanted, options)) << caching;
    expect_idle(engine, options);
  }
}

TEST(Choices, ScoreTheirPromptOnceAndAreAllTold) {
  for (std::int32_t length = 1; length <= 20; ++length) {
    engine_options options;
    options.max_num_batched_tokens = 6;
    simulated_engine engine(options, static_cast<std::uint64_t>(length));
    std::mt19937_64 random(static_cast<std::uint64_t>(length));
    const job wanted{.prompt = random_prompt(random, length), .max_tokens = length % 4, .prompt_logprobs = 0, .n = 4};
    const auto first = engine.submit(wanted);
    engine.run_until_idle();
    for (std::int32_t i = 0; i < wanted.n; ++i) {
      const auto& scores = engine.view(choice(first, i)).prompt_scores;
      ASSERT_EQ(scores.size(), wanted.prompt.size() - 1) << length << " choice " << i;
      for (std::size_t at = 0; at < scores.size(); ++at) EXPECT_EQ(scores[at].token, static_cast<token_id>(at) + 1);
    }
    const std::int64_t once = length - 1;
    const std::int64_t tail = length <= options.block_size ? once : 0;  // too short to share: each computes it all
    EXPECT_EQ(engine.scored_rows(), once + (wanted.n - 1) * tail) << length;
    expect_idle(engine, options);
  }
}

TEST(Choices, AFollowersFirstTokenDoesNotDelayTheLeaders) {
  engine_options options;
  std::mt19937_64 random(5);
  job wanted{.prompt = random_prompt(random, 60), .max_tokens = 4};
  std::array<std::uint64_t, 2> steps{};
  for (const std::int32_t n : {1, 8}) {
    simulated_engine engine(options, 5);
    wanted.n = n;
    const auto first = engine.submit(wanted);
    while (engine.view(first).tokens.empty()) ASSERT_TRUE(engine.deliver_one());
    steps[n == 1 ? 0 : 1] = engine.steps_run();
    engine.run_until_idle();
  }
  EXPECT_EQ(steps[0], steps[1]);
}

TEST(Choices, OthersPassTheChoicesThatWaitButDoNotTakeTheirSlots) {
  engine_options options;
  options.max_num_seqs = 4;
  options.max_num_batched_tokens = 8;
  simulated_engine engine(options, 6);
  std::mt19937_64 random(6);
  const job wanted{.prompt = random_prompt(random, 60), .max_tokens = 30, .n = 3};
  const job other{.prompt = random_prompt(random, 3), .max_tokens = 30};
  const auto first = engine.submit(wanted);
  const auto second = engine.submit(other);
  const auto third = engine.submit(other);
  while (engine.view(second).tokens.empty()) ASSERT_TRUE(engine.deliver_one());
  EXPECT_TRUE(engine.view(first).tokens.empty());  // it did not wait for the long prompt of others
  while (engine.view(choice(first, 2)).tokens.empty()) ASSERT_TRUE(engine.deliver_one());
  EXPECT_TRUE(engine.view(third).tokens.empty());
  engine.run_until_idle();
  expect_oracle_of_all(engine, first, wanted);
  expect_oracle(engine, second, other);
  expect_oracle(engine, third, other);
  expect_idle(engine, options);
}

TEST(Choices, AFailedLeaderIsReplacedByTheNextOne) {
  std::int64_t failed = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    engine_options options;
    options.fail_steps = 0.1;
    options.max_num_batched_tokens = 6;
    options.prefix_caching = seed % 2 == 0;
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    const job wanted{.prompt = random_prompt(random, 25), .max_tokens = 3, .n = 6};
    const auto first = engine.submit(wanted);
    engine.run_until_idle();
    for (std::int32_t i = 0; i < wanted.n; ++i) {
      if (engine.view(choice(first, i)).end->reason == finish_reason::error) {
        ++failed;
      } else {
        expect_oracle(engine, choice(first, i), wanted);
      }
    }
    expect_idle(engine, options);
  }
  EXPECT_GT(failed, 80);
}

double mean_logprob(sequence_id id, const job& wanted) {
  double sum = 0;
  const std::uint64_t key = id.request.value * limits::kMaxChoices + static_cast<std::uint64_t>(id.choice);
  for (std::int32_t i = 0; i < wanted.max_tokens; ++i)
    sum += static_cast<double>(made_logprob(key, static_cast<std::int32_t>(wanted.prompt.size()) + i));
  return sum / wanted.max_tokens;
}

/// Of choices that draft nothing: every token took a step, whichever are shown.
void expect_work_of_all(const simulated_engine& engine, sequence_id first, const job& wanted) {
  std::int32_t steps = 0;
  std::int32_t drafts = 0;
  for (std::int32_t i = 0; i < wanted.n; ++i) {
    steps += engine.view(choice(first, i)).stats.steps;
    drafts += engine.view(choice(first, i)).stats.draft_tokens;
  }
  EXPECT_EQ(steps, std::max(wanted.best_of, wanted.n) * wanted.max_tokens);
  EXPECT_EQ(drafts, 0);
}

TEST(BestOf, ShowsTheChoicesWithTheHighestMeanLogprobBestFirst) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    engine_options options;
    options.num_blocks = seed % 2 == 0 ? 64 : 16;
    options.max_model_len = 48;
    options.method = draft_method::draft_model;
    options.k = 3;
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    const job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + seed)),
                     .max_tokens = 7,
                     .n = 3,
                     .best_of = 8,
                     .logprobs = seed % 3 == 0 ? -1 : 0};
    const auto first = engine.submit(wanted);
    std::vector<double> means;
    for (std::int32_t i = 0; i < wanted.best_of; ++i) means.push_back(mean_logprob(choice(first, i), wanted));
    std::sort(means.rbegin(), means.rend());
    engine.run_until_idle();
    for (std::int32_t i = 0; i < wanted.n; ++i) {
      expect_oracle(engine, choice(first, i), wanted);
      const auto& told = engine.view(choice(first, i)).logprobs;
      EXPECT_EQ(told.size(), wanted.logprobs < 0 ? 0u : 7u);
      double sum = 0;
      for (const token_logprobs& token : told) sum += static_cast<double>(token.logprob);
      if (!told.empty()) {
        EXPECT_NEAR(sum / 7, means[static_cast<std::size_t>(i)], 1e-9);
      }
      EXPECT_EQ(engine.view(choice(first, i)).stats.unshown_tokens, i == 0 ? 5 * wanted.max_tokens : 0);
    }
    expect_work_of_all(engine, first, wanted);
    expect_idle(engine, options);
  }
}

TEST(BestOf, TellsWhatThereIsWhenItIsCancelled) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    engine_options options;
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    const auto id = engine.submit({.prompt = random_prompt(random, 20), .max_tokens = 60, .n = 2, .best_of = 5});
    for (std::uint64_t i = random() % 120; i > 0; --i) engine.deliver_one();
    engine.cancel(id);
    engine.run_until_idle();
    for (std::int32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(engine.view(choice(id, i)).end->reason, finish_reason::cancelled);
      const auto& tokens = engine.view(choice(id, i)).tokens;
      const auto expected = oracle(engine.prompt(id), 60);
      EXPECT_TRUE(tokens.size() <= 60 && std::equal(tokens.begin(), tokens.end(), expected.begin()));
    }
    expect_idle(engine, options);
  }
}

/// Few blocks, drafts, cancels, priorities, dying actors: every choice that lives has the oracle's answer.
TEST(Choices, SurviveCancelsKillsAndExpiryUnderPressure) {
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937_64 random(seed * 91 + 7);
    engine_options options;
    options.num_blocks = static_cast<std::int32_t>(12 + random() % 24);
    options.max_model_len = 40;
    options.max_num_batched_tokens = static_cast<std::int32_t>(1 + random() % 40);
    options.max_num_seqs = static_cast<std::int32_t>(1 + random() % 10);
    options.priority_policy = seed % 3 == 0;
    options.prefix_caching = seed % 4 != 1;
    const draft_method methods[] = {draft_method::draft_model, draft_method::ngram, draft_method::eagle};
    options.method = methods[seed % 3];
    options.k = 4;
    options.expire_tickets = 0.05;
    options.independent_streams = seed % 5 < 2;
    simulated_engine engine(options, seed);
    std::map<sequence_id, job> jobs;
    std::vector<sequence_id> ids;
    std::set<sequence_id> cancelled;
    for (int i = 0; i < 14; ++i) {
      job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 24)),
                 .max_tokens = static_cast<std::int32_t>(1 + random() % 16),
                 .priority = static_cast<std::int32_t>(random() % 5) - 2,
                 .prompt_logprobs = random() % 4 == 0 ? 0 : -1,
                 .n = static_cast<std::int32_t>(1 + random() % 6)};
      if (i % 4 == 1) wanted.speculation.method = draft_method::draft_model;
      if (i % 4 == 2) wanted.speculation.method = draft_method::suffix;
      ids.push_back(engine.submit(wanted));
      jobs[ids.back()] = wanted;
      for (std::uint64_t n = random() % 40; n > 0; --n) engine.deliver_one();
      if (random() % 4 == 0) {
        const auto victim = ids[random() % ids.size()];
        engine.cancel(victim);
        cancelled.insert(victim);
      }
      if (random() % 9 == 0) engine.kill_drafter(options.method);
      if (random() % 9 == 0) engine.kill_allocator();
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) {
      for (std::int32_t i = 0; i < wanted.n; ++i) {
        const auto& view = engine.view(choice(id, i));
        preemptions += view.stats.preemptions;
        if (!cancelled.contains(id)) {
          expect_oracle(engine, choice(id, i), wanted);
          EXPECT_EQ(view.prompt_scores.size(), wanted.prompt_logprobs < 0 ? 0 : wanted.prompt.size() - 1);
        }
      }
    }
    expect_idle(engine, options);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(preemptions, 100);
}

}  // namespace
}  // namespace tandem::sim

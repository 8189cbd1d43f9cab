// Beam search through the scheduler: any schedule gives the beams of the naive search, whatever is preempted, cancelled
// or lost, and nothing is held behind it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/core/naive_beams.hpp"
#include "tests/sim/expectations.hpp"
#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

sequence_id choice(sequence_id first, std::int32_t number) {
  return {first.request, number};
}

std::vector<testing::naive_beam> expected_beams(const job& wanted, const engine_options& options) {
  beam_settings settings;
  settings.width = wanted.n;
  settings.prompt_length = static_cast<std::int32_t>(wanted.prompt.size());
  settings.max_tokens = wanted.max_tokens;
  settings.params = *wanted.beams;
  settings.end_tokens = options.end_tokens;
  settings.ignore_eos = wanted.stopping.ignore_eos;
  return testing::naive_beam_search(settings, [&](const std::vector<token_id>& output) {
    std::uint64_t state = 0;
    for (const token_id token : wanted.prompt) state = mix(state, token);
    for (const token_id token : output) state = mix(state, token);
    return made_candidates(state, kVocabulary);
  });
}

void expect_beams(const simulated_engine& engine, sequence_id first, const job& wanted, const engine_options& options) {
  const auto expected = expected_beams(wanted, options);
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(wanted.n));
  for (std::int32_t i = 0; i < wanted.n; ++i) {
    const auto& beam = expected[static_cast<std::size_t>(i)];
    const client_view& view = engine.view(choice(first, i));
    EXPECT_EQ(view.tokens, beam.tokens) << "rank " << i;
    ASSERT_TRUE(view.end.has_value());
    EXPECT_EQ(view.end->reason, beam.complete ? finish_reason::stop : finish_reason::length);
    EXPECT_EQ(view.stats.completion_tokens, static_cast<std::int32_t>(beam.tokens.size()));
    double sum = 0;
    for (const token_logprobs& token : view.logprobs) sum += static_cast<double>(token.logprob);
    EXPECT_EQ(view.logprobs.size(), wanted.logprobs < 0 ? 0 : beam.tokens.size());
    if (wanted.logprobs >= 0) {
      EXPECT_DOUBLE_EQ(sum, beam.logprob);
    }
  }
}

TEST(Beams, AreThoseOfTheNaiveSearchAtEveryLengthAroundBlockBoundaries) {
  for (std::int32_t length = 1; length <= 14; ++length) {
    for (const std::int32_t width : {1, 2, 5}) {
      engine_options options;
      options.end_tokens = {7, 20, 33};
      options.prefix_caching = length % 2 == 0;
      options.max_num_batched_tokens = length % 3 == 0 ? 3 : 32;
      simulated_engine engine(options, static_cast<std::uint64_t>(length));
      std::mt19937_64 random(static_cast<std::uint64_t>(length));
      const job wanted{.prompt = random_prompt(random, length),
                       .max_tokens = 1 + length % 12,
                       .n = width,
                       .logprobs = length % 2 == 0 ? 1 : -1,
                       .beams = beam_params{}};
      const auto first = engine.submit(wanted);
      engine.run_until_idle();
      expect_beams(engine, first, wanted, options);
      EXPECT_EQ(engine.prompt_rows(), length);  // once, without any tail: the beams' last block is a copy
      expect_idle(engine, options);
      ASSERT_FALSE(::testing::Test::HasFailure()) << "length " << length << " width " << width;
    }
  }
}

TEST(Beams, ARunThatNeedsEveryBlockEndsAlone) {
  engine_options options;
  options.max_model_len = 48;
  const job wanted{.prompt = std::vector<token_id>(10, 3), .max_tokens = 20, .n = 4, .beams = beam_params{}};
  // Two shared blocks, and for each beam those of 2 + 19 further positions.
  options.num_blocks = 2 + 4 * 6;
  simulated_engine engine(options, 1);
  const auto first = engine.submit(wanted);
  engine.run_until_idle();
  expect_beams(engine, first, wanted, options);
  expect_idle(engine, options);
}

job drawn_job(std::mt19937_64& random, const engine_options& options) {
  job wanted{.prompt = random_prompt(random, static_cast<std::int32_t>(1 + random() % 20)),
             .max_tokens = static_cast<std::int32_t>(1 + random() % 14),
             .priority = static_cast<std::int32_t>(random() % 5) - 2,
             .n = static_cast<std::int32_t>(1 + random() % 4)};
  if (random() % 2 == 0) wanted.beams = beam_params{.length_penalty = random() % 2 == 0 ? 1.0F : 0.0F};
  wanted.n = std::min(wanted.n, options.max_num_seqs);
  wanted.stopping.ignore_eos = !wanted.beams || random() % 4 == 0;
  const std::int32_t length = static_cast<std::int32_t>(wanted.prompt.size());
  const std::int32_t shared = (length - 1) / options.block_size;
  const std::int32_t own = (options.num_blocks - shared) / wanted.n;
  wanted.max_tokens = std::min(wanted.max_tokens, (shared + own) * options.block_size - length + 1);
  return wanted;
}

TEST(Beams, SurvivePressureCancelsFailuresAndKillsBesideSampledRequests) {
  std::int64_t preemptions = 0;
  std::int64_t whole = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    std::mt19937_64 random(seed * 131 + 3);
    engine_options options;
    options.num_blocks = static_cast<std::int32_t>(10 + random() % 14);
    options.max_model_len = 40;
    options.max_num_batched_tokens = static_cast<std::int32_t>(1 + random() % 30);
    options.max_num_seqs = static_cast<std::int32_t>(2 + random() % 9);
    options.priority_policy = seed % 3 == 0;
    options.prefix_caching = seed % 4 != 1;
    options.method = seed % 2 == 0 ? draft_method::draft_model : draft_method::eagle;
    options.k = 3;
    options.end_tokens = {5, 17};
    options.fail_steps = seed % 5 == 0 ? 0.01 : 0.0;
    options.independent_streams = seed % 2 == 0;
    simulated_engine engine(options, seed);
    std::map<sequence_id, job> jobs;
    std::vector<sequence_id> ids;
    std::set<sequence_id> cancelled;
    for (int i = 0; i < 12; ++i) {
      const job wanted = drawn_job(random, options);
      ids.push_back(engine.submit(wanted));
      jobs[ids.back()] = wanted;
      for (std::uint64_t n = random() % 30; n > 0; --n) engine.deliver_one();
      if (random() % 5 == 0) {
        const auto victim = ids[random() % ids.size()];
        engine.cancel(victim);
        cancelled.insert(victim);
      }
      if (random() % 9 == 0) engine.kill_drafter(options.method);
      if (random() % 9 == 0) engine.kill_allocator();
    }
    engine.run_until_idle();
    for (const auto& [id, wanted] : jobs) {
      if (wanted.beams) preemptions += engine.view(id).stats.preemptions;
      const bool failed = engine.view(id).end->reason == finish_reason::error;
      if (cancelled.contains(id) || failed) continue;
      ++whole;
      if (wanted.beams) expect_beams(engine, id, wanted, options);
      for (std::int32_t n = 0; n < wanted.n && !wanted.beams; ++n) {
        if (engine.view(choice(id, n)).end->reason != finish_reason::error)
          expect_oracle(engine, choice(id, n), wanted);
      }
    }
    expect_idle(engine, options);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(preemptions, 25);
  EXPECT_GT(whole, 1'500);
}

TEST(Beams, TellTheirBestSoFarWhenTheyAreCancelled) {
  std::int64_t tokens = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    engine_options options;
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    const auto id =
        engine.submit({.prompt = random_prompt(random, 9), .max_tokens = 60, .n = 3, .beams = beam_params{}});
    for (std::uint64_t i = random() % 200; i > 0; --i) engine.deliver_one();
    engine.cancel(id);
    engine.run_until_idle();
    for (std::int32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(engine.view(choice(id, i)).end->reason, finish_reason::cancelled);
      tokens += static_cast<std::int64_t>(engine.view(choice(id, i)).tokens.size());
    }
    expect_idle(engine, options);
  }
  EXPECT_GT(tokens, 60);
}

TEST(Beams, ThatAreCompleteWhenTheSearchIsCancelledHaveStopped) {
  int complete = 0;
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    engine_options options;
    options.end_tokens = {5, 17, 30, 41};
    simulated_engine engine(options, seed);
    std::mt19937_64 random(seed);
    const auto id =
        engine.submit({.prompt = random_prompt(random, 9), .max_tokens = 60, .n = 3, .beams = beam_params{}});
    for (std::uint64_t i = random() % 120; i > 0; --i) engine.deliver_one();
    engine.cancel(id);
    engine.run_until_idle();
    for (std::int32_t i = 0; i < 3; ++i) {
      const client_view& view = engine.view(choice(id, i));
      const auto& ends = options.end_tokens;
      const bool ended = !view.tokens.empty() && std::find(ends.begin(), ends.end(), view.tokens.back()) != ends.end();
      EXPECT_EQ(view.end->reason, ended ? finish_reason::stop : finish_reason::cancelled) << seed;
      ++(ended ? complete : cut);
    }
  }
  EXPECT_GT(complete, 10);
  EXPECT_GT(cut, 10);
}

TEST(Beams, CountTheForwardsThatGaveLanesTheirCandidates) {
  engine_options options;
  simulated_engine engine(options, 1);
  const job wanted{.prompt = std::vector<token_id>(9, 3), .max_tokens = 6, .n = 3, .beams = beam_params{}};
  const auto first = engine.submit(wanted);
  engine.run_until_idle();
  std::int32_t steps = 0;
  for (std::int32_t i = 0; i < wanted.n; ++i) steps += engine.view(choice(first, i)).stats.steps;
  EXPECT_EQ(steps, 1 + (wanted.max_tokens - 1) * wanted.n);  // one row gives the first tokens of all
}

}  // namespace
}  // namespace tandem::sim

#include "core/scheduling/beam_search.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/core/naive_beams.hpp"

namespace tandem {
namespace {

using ids = std::vector<token_id>;

/// Made-up log-probabilities behind a text; coarse ones have many ties.
struct made_model {
  std::int32_t vocabulary = 8;
  std::uint64_t seed = 0;
  int coarseness = 1;

  beam_candidates next(const ids& text) const {
    std::uint64_t hash = seed + 1;
    for (const token_id token : text) hash = (hash ^ static_cast<std::uint64_t>(token + 1)) * 0x9E3779B97F4A7C15ull;
    std::mt19937_64 random(hash);
    beam_candidates all;
    for (token_id id = 0; id < vocabulary; ++id)
      all.emplace_back(id, -static_cast<float>(random() % 1000 / static_cast<unsigned>(coarseness)) / 100.0F);
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    return all;
  }
};

/// Lanes as the scheduler keeps them: texts that follow the steps, and nothing but the steps.
std::vector<beam_hypothesis> search(const beam_settings& settings, const made_model& model, std::int32_t& steps) {
  beam_search beams(settings);
  std::vector<ids> lanes(static_cast<std::size_t>(settings.width));
  while (!beams.over()) {
    std::vector<beam_candidates> candidates(lanes.size());
    for (const beam_hypothesis& each : beams.live()) {
      const auto lane = static_cast<std::size_t>(each.lane);
      EXPECT_EQ(lanes[lane], each.tokens);
      candidates[lane] = model.next(lanes[lane]);
    }
    const std::vector<ids> before = lanes;
    std::set<std::int32_t> taken;
    std::set<std::int32_t> kept;
    for (const beam_step& step : beams.advance(candidates)) {
      EXPECT_TRUE(taken.insert(step.lane).second);
      if (step.lane == step.parent) kept.insert(step.lane);
      lanes[static_cast<std::size_t>(step.lane)] = before[static_cast<std::size_t>(step.parent)];
      lanes[static_cast<std::size_t>(step.lane)].push_back(step.token);
      EXPECT_TRUE(kept.contains(step.parent)) << "the parent's own lane comes first";
    }
    ++steps;
  }
  return beams.best();
}

beam_settings drawn_settings(std::mt19937_64& random, std::int32_t vocabulary) {
  beam_settings settings;
  settings.width = static_cast<std::int32_t>(1 + random() % 6);
  settings.prompt_length = static_cast<std::int32_t>(1 + random() % 5);
  settings.max_tokens = static_cast<std::int32_t>(1 + random() % 9);
  const float penalties[] = {1.0F, 0.0F, 2.0F, -1.0F, 0.5F};
  settings.params.length_penalty = penalties[random() % 5];
  settings.ignore_eos = random() % 5 == 0;
  for (token_id id = 0; id < vocabulary; ++id) {
    if (random() % 4 == 0) settings.end_tokens.push_back(id);
  }
  return settings;
}

TEST(BeamSearch, GivesTheBeamsAndScoresOfTheNaiveSearchThoughItEndsEarlier) {
  std::int64_t fewer = 0;
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    std::mt19937_64 random(seed);
    const made_model model{static_cast<std::int32_t>(2 + random() % 10), seed, random() % 2 == 0 ? 1 : 100};
    const beam_settings settings = drawn_settings(random, model.vocabulary);
    const auto expected = testing::naive_beam_search(settings, [&](const ids& text) { return model.next(text); });
    std::int32_t steps = 0;
    const auto got = search(settings, model, steps);
    fewer += settings.max_tokens - steps;
    ASSERT_EQ(got.size(), expected.size()) << seed;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tokens, expected[i].tokens) << seed << " rank " << i;
      EXPECT_EQ(got[i].logprob, expected[i].logprob);
      EXPECT_EQ(got[i].complete, expected[i].complete);
    }
  }
  EXPECT_GT(fewer, 1'000);
}

TEST(BeamSearch, EndsWithTheNthCompleteBeamWhenAskedTo) {
  const made_model model{6, 11, 1};
  beam_settings settings;
  settings.width = 2;
  settings.prompt_length = 3;
  settings.max_tokens = 30;
  settings.end_tokens = {0, 1, 2, 3, 4, 5};  // every token ends
  settings.params.early_stopping = true;
  std::int32_t steps = 0;
  const auto best = search(settings, model, steps);
  EXPECT_EQ(steps, 1);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_TRUE(best[0].complete && best[1].complete);
  EXPECT_EQ(best[0].tokens, ids{model.next({})[0].first});
}

TEST(BeamSearch, KeepsTheLogProbabilitiesThatWereAskedFor) {
  const made_model model{9, 3, 1};
  beam_settings settings;
  settings.width = 3;
  settings.prompt_length = 2;
  settings.max_tokens = 5;
  settings.top_logprobs = 2;
  std::int32_t steps = 0;
  for (const beam_hypothesis& beam : search(settings, model, steps)) {
    ASSERT_EQ(beam.logprobs.size(), beam.tokens.size());
    double sum = 0;
    for (std::size_t i = 0; i < beam.tokens.size(); ++i) {
      const auto all = model.next({beam.tokens.begin(), beam.tokens.begin() + static_cast<std::ptrdiff_t>(i)});
      const token_logprobs& told = beam.logprobs[i];
      EXPECT_EQ(told.token, beam.tokens[i]);
      EXPECT_EQ(told.top, beam_candidates(all.begin(), all.begin() + 2));
      EXPECT_EQ(all[static_cast<std::size_t>(told.rank) - 1], (std::pair{told.token, told.logprob}));
      sum += static_cast<double>(told.logprob);
    }
    EXPECT_DOUBLE_EQ(sum, beam.logprob);
  }
}

}  // namespace
}  // namespace tandem

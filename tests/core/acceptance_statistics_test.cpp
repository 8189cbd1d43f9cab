#include "core/speculation/acceptance_statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/speculation/ngram_index.hpp"

namespace tandem {
namespace {

proposal_seen model_run(std::int32_t drafted, std::int32_t accepted, sequence_acceptance* of = nullptr) {
  return {draft_method::draft_model, of, kNoOpinion, drafted, accepted};
}

TEST(evidence, grows_with_the_length_of_the_match) {
  EXPECT_EQ(evidence_of_match(0), kNothingOffered);
  const std::vector<std::pair<std::int32_t, int>> expected{{1, 1}, {2, 1},  {3, 2},  {4, 2},  {5, 3},   {8, 3},
                                                           {9, 4}, {16, 4}, {17, 5}, {32, 5}, {1000, 5}};
  for (const auto& [tokens, evidence] : expected) EXPECT_EQ(evidence_of_match(tokens), evidence) << tokens;
}

TEST(evidence, of_an_index_is_the_length_of_the_repetition) {
  ngram_index index(2, 5);
  std::vector<token_id> text(20);
  std::iota(text.begin(), text.end(), 100);
  index.append(text);
  EXPECT_EQ(index.find().length, 0);
  for (std::int32_t copied = 1; copied <= 12; ++copied) {
    index.append(std::vector<token_id>{text[static_cast<std::size_t>(copied - 1)]});
    const auto found = index.find();
    EXPECT_EQ(found.length, copied >= 2 ? copied : 0);
    const auto next = index.continue_from(found, 1);
    if (copied >= 2) {
      EXPECT_EQ(next, (std::vector<token_id>{text[static_cast<std::size_t>(copied)]}));
    }
  }
}

TEST(acceptance_statistics, survival_never_rises_and_stays_a_probability) {
  acceptance_statistics statistics(draft_method::draft_model);
  sequence_acceptance sequence;
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto drafted = static_cast<std::int32_t>(1 + random() % limits::kMaxDraftTokens);
    statistics.observe(
        model_run(drafted, static_cast<std::int32_t>(random() % (static_cast<unsigned>(drafted) + 1)), &sequence));
    const survival all = statistics.expect(&sequence.by_method[index_of(draft_method::draft_model)], kNoOpinion);
    double before = 1;
    for (const double each : all) {
      ASSERT_GT(each, 0);
      ASSERT_LE(each, before);
      before = each;
    }
  }
}

TEST(acceptance_statistics, learns_each_place_given_the_one_before) {
  acceptance_statistics statistics(draft_method::draft_model);
  std::mt19937_64 random(2);
  const auto happens = [&](double probability) { return static_cast<double>(random() >> 11) * 0x1p-53 < probability; };
  const std::array<double, 4> truth{0.9, 0.5, 0.8, 0.3};
  for (int i = 0; i < 3000; ++i) {
    std::int32_t accepted = 0;
    while (accepted < 4 && happens(truth[static_cast<std::size_t>(accepted)])) ++accepted;
    statistics.observe(model_run(4, accepted));
  }
  const survival all = statistics.expect(nullptr, kNoOpinion);
  EXPECT_NEAR(all[0], 0.9, 0.08);
  EXPECT_NEAR(all[1] / all[0], 0.5, 0.12);
  EXPECT_NEAR(all[2] / all[1], 0.8, 0.12);
  EXPECT_NEAR(all[3] / all[2], 0.3, 0.2);
}

TEST(acceptance_statistics, a_new_sequence_starts_from_the_average_and_leaves_it_soon) {
  acceptance_statistics statistics(draft_method::draft_model);
  for (int i = 0; i < 200; ++i) statistics.observe(model_run(3, i % 2 == 0 ? 3 : 0));
  sequence_acceptance good;
  sequence_acceptance bad;
  EXPECT_DOUBLE_EQ(statistics.expect(&good.by_method[index_of(draft_method::draft_model)], kNoOpinion)[0],
                   statistics.expect(nullptr, kNoOpinion)[0]);
  for (int i = 0; i < 4; ++i) {
    statistics.observe(model_run(3, 3, &good));
    statistics.observe(model_run(3, 0, &bad));
  }
  const double average = statistics.expect(nullptr, kNoOpinion)[0];
  EXPECT_GT(statistics.expect(&good.by_method[index_of(draft_method::draft_model)], kNoOpinion)[0], average + 0.1);
  EXPECT_LT(statistics.expect(&bad.by_method[index_of(draft_method::draft_model)], kNoOpinion)[0], average - 0.1);
  bad.by_method[index_of(draft_method::draft_model)].steps_unasked = 10'000;
  EXPECT_NEAR(statistics.expect(&bad.by_method[index_of(draft_method::draft_model)], kNoOpinion)[0], average, 0.02);
}

TEST(acceptance_statistics, tells_long_matches_from_short_ones) {
  acceptance_statistics statistics(draft_method::ngram);
  for (int i = 0; i < 50; ++i) {
    statistics.observe({draft_method::ngram, nullptr, 5, 8, 8});
    statistics.observe({draft_method::ngram, nullptr, 1, 2, 0});
  }
  EXPECT_GT(statistics.expect(nullptr, 5)[7], 0.6);
  EXPECT_LT(statistics.expect(nullptr, 1)[0], 0.2);
}

TEST(acceptance_statistics, foretells_how_often_a_sequence_is_offered_anything) {
  acceptance_statistics statistics(draft_method::ngram);
  sequence_acceptance copying;
  sequence_acceptance writing;
  for (int i = 0; i < 20; ++i) {
    statistics.observe({draft_method::ngram, &copying, 5, 8, 8});
    statistics.observe({draft_method::ngram, &writing, kNothingOffered, 0, 0});
  }
  const evidence_shares copied = statistics.offers(&copying.by_method[index_of(draft_method::ngram)]);
  const evidence_shares written = statistics.offers(&writing.by_method[index_of(draft_method::ngram)]);
  EXPECT_GT(copied[5], 0.7);
  EXPECT_GT(written[kNothingOffered], 0.7);
  EXPECT_NEAR(std::accumulate(copied.begin(), copied.end(), 0.0), 1, 1e-9);
  EXPECT_NEAR(std::accumulate(written.begin(), written.end(), 0.0), 1, 1e-9);
}

}  // namespace
}  // namespace tandem

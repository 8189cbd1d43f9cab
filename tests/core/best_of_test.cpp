#include "core/scheduling/best_of.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

tokens_committed::entry choice_with(std::vector<float> logprobs, finish_reason reason = finish_reason::stop) {
  tokens_committed::entry choice;
  for (const float logprob : logprobs) choice.logprobs.push_back({1, logprob, 1, {}});
  choice.end = finish{.reason = reason};
  return choice;
}

using places = std::vector<std::size_t>;

TEST(BestChoices, AreThoseWithTheHighestMeanPerToken) {
  const std::vector<tokens_committed::entry> choices{choice_with({-1, -1, -1}), choice_with({-2}),
                                                     choice_with({-0.5F, -0.7F, -0.6F, -0.8F}), choice_with({-0.9F})};
  EXPECT_EQ(best_choices(choices, 2), (places{2, 3}));  // the sum of the first of them is the lower one
  EXPECT_EQ(best_choices(choices, 4), (places{2, 3, 0, 1}));
}

TEST(BestChoices, EqualOnesKeepTheirOrder) {
  const std::vector<tokens_committed::entry> choices{choice_with({-1}), choice_with({-1, -1}), choice_with({-1})};
  EXPECT_EQ(best_choices(choices, 3), (places{0, 1, 2}));
}

TEST(BestChoices, EmptyOnesComeBehindAndFailedOnesLast) {
  const std::vector<tokens_committed::entry> choices{choice_with({-0.1F}, finish_reason::error), choice_with({}),
                                                     choice_with({-50})};
  EXPECT_EQ(best_choices(choices, 3), (places{2, 1, 0}));
}

TEST(AddUnshown, TheFirstCarriesWhatTheOthersCost) {
  std::vector<tokens_committed::entry> choices(4, choice_with({-1}));
  for (int i = 0; i < 4; ++i) {
    sequence_stats& stats = choices[static_cast<std::size_t>(i)].stats;
    stats.completion_tokens = 10 + i;
    stats.steps = 1 << i;
    stats.draft_tokens = 100 << i;
    stats.accepted_tokens = 10 << i;
    stats.by_method[index_of(draft_method::ngram)].runs = 1 << i;
  }
  add_unshown(choices, places{2, 0});
  const sequence_stats& best = choices[2].stats;
  EXPECT_EQ(best.completion_tokens, 12);
  EXPECT_EQ(best.unshown_tokens, 11 + 13);
  EXPECT_EQ(best.steps, 2 + 4 + 8);
  EXPECT_EQ(best.draft_tokens, 1400);
  EXPECT_EQ(best.accepted_tokens, 140);
  EXPECT_EQ(best.by_method[index_of(draft_method::ngram)].runs, 14);
  EXPECT_EQ(choices[0].stats.steps, 1);
  EXPECT_EQ(choices[0].stats.unshown_tokens, 0);
}

TEST(AppendEntry, JoinsWhatASequenceSaid) {
  tokens_committed::entry all = choice_with({-1});
  all.end.reset();
  all.tokens = {4};
  tokens_committed::entry next = choice_with({-2}, finish_reason::length);
  next.tokens = {5};
  next.stats.completion_tokens = 2;
  append_entry(all, next);
  EXPECT_EQ(all.tokens, (std::vector<token_id>{4, 5}));
  EXPECT_EQ(all.logprobs.size(), 2u);
  EXPECT_EQ(all.end->reason, finish_reason::length);
  EXPECT_EQ(all.stats.completion_tokens, 2);
}

}  // namespace
}  // namespace tandem

#include "actors/ngram_source.hpp"

#include <gtest/gtest.h>

#include "core/ticket.hpp"

namespace tandem {
namespace {

draft_work work_of(proposal wanted) {
  draft_work work;
  work.step = 1;
  work.proposals = {std::move(wanted)};
  work.drafts = std::make_shared<ticket>(1);
  return work;
}

TEST(NgramSource, DraftsWhatFollowedTheLastRepetition) {
  ngram_source source({1, 3});
  const auto work = work_of({.slot = 4, .incarnation = 1, .new_tokens = {1, 2, 3, 4, 1, 2}, .k = 2, .ticket_row = 0});
  const auto outcome = source.draft(work);
  EXPECT_EQ(work.drafts->current(), ticket::state::open);  // the drafter seals it when the scheduler has been told
  EXPECT_EQ(work.drafts->drafts(0).tokens, (std::vector<token_id>{3, 4}));
  ASSERT_EQ(outcome.entries.size(), 1u);
  EXPECT_EQ(outcome.entries[0].known_rows, 6);
  EXPECT_EQ(outcome.entries[0].draft_rows, 0);  // else the scheduler would leave accepted ones out of the next proposal
}

TEST(NgramSource, AGapGivesNoDraftsAndSaysFromWhereToTell) {
  ngram_source source({1, 3});
  const auto work =
      work_of({.slot = 0, .incarnation = 2, .first_position = 9, .new_tokens = {1}, .k = 3, .ticket_row = 0});
  const auto outcome = source.draft(work);
  EXPECT_TRUE(work.drafts->drafts(0).tokens.empty());
  EXPECT_EQ(outcome.entries[0].known_rows, 0);
}

TEST(NgramSource, AClosedSlotIsForgotten) {
  ngram_source source({1, 3});
  source.draft(work_of({.slot = 0, .incarnation = 1, .new_tokens = {1, 2}}));
  EXPECT_EQ(source.sequences(), 1u);
  draft_work closing;
  closing.closed = {0};
  source.draft(closing);
  EXPECT_EQ(source.sequences(), 0u);
}

TEST(NgramSource, AnExpiredTicketIsLeftAlone) {
  ngram_source source({1, 3});
  const auto work = work_of({.slot = 0, .incarnation = 1, .new_tokens = {1, 2, 1}, .k = 2, .ticket_row = 0});
  work.drafts->expire();
  const auto outcome = source.draft(work);
  EXPECT_EQ(work.drafts->current(), ticket::state::expired);
  EXPECT_EQ(outcome.entries[0].known_rows, 3);
}

}  // namespace
}  // namespace tandem

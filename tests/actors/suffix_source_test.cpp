#include "actors/suffix_source.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace tandem {
namespace {

using tokens_t = std::vector<token_id>;

tokens_t counting(token_id from, std::size_t count) {
  tokens_t tokens(count);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

slot_opening opening_of(slot_id slot, std::uint64_t salt, std::int32_t prompt_length) {
  slot_opening opening;
  opening.slot = slot;
  opening.salt = salt;
  opening.prompt_length = prompt_length;
  return opening;
}

draft_work work_of(proposal wanted, std::vector<slot_opening> opened = {}) {
  draft_work work;
  work.step = 1;
  work.opened = std::move(opened);
  work.proposals = {std::move(wanted)};
  work.drafts = std::make_shared<ticket>(1);
  return work;
}

/// What a fresh sequence in slot 9 with that salt is offered behind `tokens`.
ticket::row offered(suffix_source& source, const tokens_t& tokens, std::int32_t k = 4, std::uint64_t salt = 0) {
  proposal wanted{.slot = 9, .incarnation = 1, .new_tokens = tokens, .k = k, .ticket_row = 0};
  const auto work = work_of(std::move(wanted), {opening_of(9, salt, 1)});
  source.draft(work);
  return work.drafts->drafts(0);
}

TEST(suffix_source, learns_what_a_closed_slot_generated_and_not_its_prompt) {
  suffix_source source({});
  outputs_closed closed;
  closed.entries.push_back({.salt = 0, .tokens = counting(100, 40), .unlearned = 20});
  source.learn(closed);
  EXPECT_EQ(offered(source, counting(100, 30)).tokens, counting(130, 4));
  EXPECT_EQ(offered(source, counting(100, 20)).tokens, counting(120, 4));  // the prompt's end is a context
  EXPECT_TRUE(offered(source, counting(100, 10)).tokens.empty());          // its tokens were not learned
  EXPECT_EQ(source.sequences(), 1u);
}

TEST(suffix_source, learns_from_proposals_only_what_they_say_is_new_output) {
  suffix_source source({});
  const tokens_t text = counting(100, 40);
  source.draft(work_of({.slot = 0, .incarnation = 1, .new_tokens = {text.begin(), text.begin() + 30}, .unlearned = 10},
                       {opening_of(0, 0, 20)}));
  source.draft(work_of({.slot = 0,
                        .incarnation = 1,
                        .first_position = 30,
                        .new_tokens = {text.begin() + 30, text.end()},
                        .unlearned = 10}));
  EXPECT_EQ(offered(source, counting(100, 20), 8).tokens, counting(120, 8));
  EXPECT_EQ(offered(source, counting(100, 36), 8).tokens, counting(136, 4));
  EXPECT_TRUE(offered(source, counting(100, 19)).tokens.empty());
}

TEST(suffix_source, tokens_it_is_told_again_are_learned_once) {
  suffix_source source({});
  const auto told = [&](std::uint32_t incarnation, std::int32_t unlearned) {
    source.draft(work_of({.slot = 0, .incarnation = incarnation, .new_tokens = {1, 2, 3}, .unlearned = unlearned}));
  };
  told(1, 1);
  const double once = source.statistics().propose(0, tokens_t{1, 2}, 1).first_probability;
  told(2, 0);
  EXPECT_EQ(source.statistics().propose(0, tokens_t{1, 2}, 1).first_probability, once);
}

TEST(suffix_source, a_salt_is_a_world_of_its_own) {
  suffix_source source({});
  outputs_closed closed;
  closed.entries.push_back({.salt = 5, .tokens = counting(100, 40), .unlearned = 20});
  source.learn(closed);
  EXPECT_TRUE(offered(source, counting(100, 30)).tokens.empty());
  EXPECT_TRUE(offered(source, counting(100, 30), 4, 6).tokens.empty());
  EXPECT_EQ(offered(source, counting(100, 30), 4, 5).tokens, counting(130, 4));
}

TEST(suffix_source, says_how_sure_it_is_and_keeps_to_what_is_allowed_for_that) {
  suffix_source source({});
  outputs_closed closed;
  closed.entries.push_back({.salt = 0, .tokens = counting(100, 60), .unlearned = 59});
  source.learn(closed);
  EXPECT_EQ(offered(source, counting(100, 33)).evidence, 5);    // 32 tokens seen before
  EXPECT_EQ(offered(source, {7, 8, 9, 110, 111}).evidence, 2);  // two tokens, once: 1/2
  EXPECT_EQ(offered(source, {7, 8, 9, 10, 11}).evidence, kNothingOffered);
  proposal wanted{.slot = 3, .incarnation = 1, .new_tokens = counting(100, 33), .k = 6, .ticket_row = 0};
  wanted.most = same_for_all(6);
  wanted.most[5] = 2;
  const auto work = work_of(wanted);
  source.draft(work);
  EXPECT_EQ(work.drafts->drafts(0).tokens, counting(133, 2));
}

TEST(suffix_source, a_gap_gives_no_drafts_and_says_from_where_to_tell) {
  suffix_source source({});
  const auto work =
      work_of({.slot = 0, .incarnation = 2, .first_position = 9, .new_tokens = {1}, .k = 3, .ticket_row = 0});
  const auto outcome = source.draft(work);
  EXPECT_TRUE(work.drafts->drafts(0).tokens.empty());
  EXPECT_EQ(outcome.entries[0].known_rows, 0);
}

TEST(suffix_source, a_closed_slot_is_forgotten_and_what_it_taught_is_not) {
  suffix_source source({});
  source.draft(work_of({.slot = 0, .incarnation = 1, .new_tokens = counting(100, 40), .unlearned = 30}));
  draft_work closing;
  closing.closed = {0};
  source.draft(closing);
  EXPECT_EQ(source.sequences(), 0u);
  EXPECT_EQ(offered(source, counting(100, 30)).tokens, counting(130, 4));
}

}  // namespace
}  // namespace tandem

#include "core/sampling/constraint.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/sampling/acceptance.hpp"
#include "tests/support/toy_grammar.hpp"

namespace tandem::testing {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
constexpr token_id kEnd = 9;

/// 1 2 3 4 and the end token; 7 may stand for 3.
toy_grammar counting() {
  return {10,
          [](const std::vector<token_id>& before, token_id next) {
            const auto due = static_cast<token_id>(before.size()) + 1;
            return before.size() == 4 ? next == kEnd : next == due || (due == 3 && next == 7);
          },
          kEnd};
}

std::vector<std::uint32_t> mask_of(grammar_matcher& matcher) {
  std::vector<std::uint32_t> bits(mask_words(10));
  matcher.fill_mask(bits);
  return bits;
}

/// A verification in which the logits of each row favour one token.
struct favoured_rows {
  std::vector<token_id> favourites;
  std::vector<float> scratch = std::vector<float>(10);
  std::vector<std::uint32_t> mask = std::vector<std::uint32_t>(1);
  sampling_params params;

  acceptance_output verify(grammar_matcher& matcher, const std::vector<token_id>& drafts, bool last_impossible) {
    params.temperature = 0;
    acceptance_input input;
    input.params = &params;
    input.drafts = drafts;
    input.matcher = &matcher;
    input.mask = mask;
    input.last_draft_impossible = last_impossible;
    input.logits = [this](std::int32_t row) {
      scratch.assign(10, 0.0F);
      scratch[static_cast<std::size_t>(favourites.at(static_cast<std::size_t>(row)))] = 5;
      return std::span<float>(scratch);
    };
    token_counts counts;
    return verify_drafts(input, counts);
  }
};

TEST(keep_masked, bans_exactly_the_tokens_without_a_bit) {
  for (const std::size_t size : {1u, 31u, 32u, 33u, 64u, 70u, 200u}) {
    std::vector<std::uint32_t> bits(mask_words(size), 0);
    for (std::size_t id = 0; id < size; ++id)
      if (id % 3 == 1 || (id >= 32 && id < 64)) bits[id / 32] |= 1U << (id % 32);
    std::vector<float> logits(size, -1.5F);
    EXPECT_EQ(keep_masked(logits, bits), size > 1);
    for (std::size_t id = 0; id < size; ++id)
      EXPECT_EQ(logits[id], (bits[id / 32] >> (id % 32) & 1U) != 0 ? -1.5F : kBanned) << id << " of " << size;
  }
}

TEST(keep_masked, tells_when_nothing_is_left) {
  std::vector<float> logits{1, kBanned, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<std::uint32_t> others{0b110};
  EXPECT_FALSE(keep_masked(logits, others));
}

TEST(acceptable_prefix, ends_at_the_first_that_cannot_follow_and_behind_an_end_and_leaves_no_trace) {
  const toy_grammar rules = counting();
  const auto matcher = rules.start();
  ASSERT_TRUE(matcher->accept(1));
  const auto before = mask_of(*matcher);
  const std::vector<std::pair<std::vector<token_id>, std::size_t>> cases = {
      {{}, 0}, {{5}, 0}, {{2, 3, 5, 4}, 2}, {{2, 7, 4}, 3}, {{2, 3, 4, kEnd, 1, 2}, 4}, {{kEnd}, 0}};
  for (const auto& [drafts, expected] : cases) {
    EXPECT_EQ(acceptable_prefix(*matcher, drafts), expected);
    EXPECT_EQ(mask_of(*matcher), before);
  }
}

TEST(verify_drafts, follows_the_grammar_where_the_model_would_not) {
  const toy_grammar rules = counting();
  favoured_rows rows{{8, 2, 7, 8, 8, 8}};
  const auto matcher = rules.start();
  const acceptance_output out = rows.verify(*matcher, {1, 2, 3}, false);
  EXPECT_EQ(out.tokens, (std::vector<token_id>{1, 2, 7}));  // at the third place the model's own choice may follow
  EXPECT_EQ(out.accepted, 2);
  EXPECT_FALSE(out.stuck);
  EXPECT_TRUE(matcher->accept(4)) << "the matcher stands behind what was returned";
}

TEST(verify_drafts, an_impossible_draft_is_never_accepted_and_needs_no_row_of_its_own) {
  const toy_grammar rules = counting();
  favoured_rows rows{{1, 5}};
  const auto matcher = rules.start();
  const acceptance_output out = rows.verify(*matcher, {1, 5}, true);
  EXPECT_EQ(out.tokens, (std::vector<token_id>{1, 2}));
  EXPECT_EQ(out.accepted, 1);
}

TEST(verify_drafts, draws_on_freely_behind_an_accepted_end) {
  const toy_grammar rules = counting();
  favoured_rows rows{{0, 0, 0, 0, 0, 6}};
  const auto matcher = rules.start();
  const acceptance_output out = rows.verify(*matcher, {1, 2, 3, 4, kEnd}, false);
  EXPECT_EQ(out.tokens, (std::vector<token_id>{1, 2, 3, 4, kEnd, 6}));
  EXPECT_TRUE(matcher->has_ended());
}

TEST(verify_drafts, is_stuck_where_parameters_leave_no_token_of_the_grammar) {
  const toy_grammar rules = counting();
  favoured_rows rows{{1, 2, 3, 4}};
  rows.params.allowed_token_ids = {1, 2, 4, kEnd};
  const auto matcher = rules.start();
  const acceptance_output out = rows.verify(*matcher, {1, 2, 3}, false);
  EXPECT_EQ(out.stuck, stuck_reason::nothing_fits);
  EXPECT_EQ(out.tokens, (std::vector<token_id>{1, 2}));
  EXPECT_EQ(out.accepted, 2);
}

/// Allows anything in its masks and takes nothing.
class faulty_matcher final : public grammar_matcher {
 public:
  explicit faulty_matcher(std::optional<stuck_reason> why) : why_(why) {}
  bool accept(token_id) override { return false; }
  void rewind(std::int32_t) override {}
  void fill_mask(std::span<std::uint32_t> bits) override {
    for (std::uint32_t& word : bits) word = why_ ? 0 : ~0U;
  }
  bool is_complete() const override { return false; }
  bool has_ended() const override { return false; }
  std::optional<stuck_reason> lost() const override { return why_; }

 private:
  std::optional<stuck_reason> why_;
};

TEST(verify_drafts, says_when_the_matcher_is_to_blame_and_not_what_was_asked_for) {
  for (const std::optional<stuck_reason> why : {std::optional<stuck_reason>(), {stuck_reason::too_slow}}) {
    favoured_rows rows{{1, 2}};
    faulty_matcher matcher(why);
    const acceptance_output out = rows.verify(matcher, {}, false);
    EXPECT_EQ(out.stuck, why.value_or(stuck_reason::broken));
    EXPECT_TRUE(out.tokens.empty());
  }
}

}  // namespace
}  // namespace tandem::testing

#include "actors/custom_source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "actors/call_thread.hpp"

namespace tandem {
namespace {

using tokens_t = std::vector<token_id>;

/// Answers as the test says and remembers what it was asked.
class scripted_drafts final : public custom_drafts {
 public:
  std::vector<token_id> propose(const custom_question& question) override {
    sequence = question.sequence;
    tokens.assign(question.tokens.begin(), question.tokens.end());
    prompt_length = question.prompt_length;
    k = question.k;
    ++calls;
    if (throws) throw std::runtime_error("not today");
    return answer;
  }
  tokens_t answer;
  bool throws = false;
  int calls = 0;
  std::uint64_t sequence = 0;
  tokens_t tokens;
  std::int32_t prompt_length = 0;
  std::int32_t k = 0;
};

class custom_source_test : public ::testing::Test {
 protected:
  ticket::row ask(proposal wanted, std::vector<slot_opening> opened = {}) {
    draft_work work;
    work.step = 1;
    work.opened = std::move(opened);
    wanted.ticket_row = 0;
    work.proposals = {std::move(wanted)};
    work.drafts = std::make_shared<ticket>(1);
    source_.draft(work);
    return work.drafts->drafts(0);
  }
  std::shared_ptr<scripted_drafts> user_ = std::make_shared<scripted_drafts>();
  std::vector<draft_fault> faults_;
  custom_source source_{{user_, 50, [this](draft_fault fault) { faults_.push_back(fault); }}};
};

TEST_F(custom_source_test, asks_with_all_that_is_known_and_passes_the_answer_on) {
  user_->answer = {7, 8};
  slot_opening opening;
  opening.slot = 2;
  opening.prompt_length = 3;
  EXPECT_EQ(ask({.slot = 2, .incarnation = 1, .new_tokens = {1, 2, 3, 4}, .k = 5}, {opening}).tokens, (tokens_t{7, 8}));
  EXPECT_EQ(user_->tokens, (tokens_t{1, 2, 3, 4}));
  EXPECT_EQ(user_->prompt_length, 3);
  EXPECT_EQ(user_->k, 5);
  const std::uint64_t first = user_->sequence;
  ask({.slot = 2, .incarnation = 1, .first_position = 4, .new_tokens = {7, 9}, .k = 2});
  EXPECT_EQ(user_->tokens, (tokens_t{1, 2, 3, 4, 7, 9}));
  EXPECT_EQ(user_->sequence, first);
  ask({.slot = 3, .incarnation = 1, .new_tokens = {1}, .k = 2});
  EXPECT_NE(user_->sequence, first);
  EXPECT_TRUE(faults_.empty());
}

TEST_F(custom_source_test, is_asked_only_for_drafts_that_are_wanted) {
  user_->answer = tokens_t(20, 1);
  ask({.slot = 2, .incarnation = 1, .new_tokens = {1, 2}, .k = 0});
  proposal none{.slot = 2, .incarnation = 1, .new_tokens = {1, 2}, .k = 4};
  none.most = same_for_all(0);
  ask(none);
  EXPECT_EQ(user_->calls, 0);
  EXPECT_EQ(ask({.slot = 2, .incarnation = 1, .new_tokens = {1, 2}, .k = 4}).tokens, tokens_t(4, 1));
}

TEST_F(custom_source_test, an_id_outside_the_vocabulary_is_dropped_with_all_behind_it) {
  for (const token_id wrong : {50, -1, 1 << 30}) {
    user_->answer = {49, wrong, 3};
    EXPECT_EQ(ask({.slot = 2, .incarnation = 1, .new_tokens = {1}, .k = 4}).tokens, (tokens_t{49}));
  }
  EXPECT_EQ(faults_, std::vector<draft_fault>(3, draft_fault::unknown_token));
}

TEST_F(custom_source_test, an_exception_is_no_drafts) {
  user_->throws = true;
  EXPECT_TRUE(ask({.slot = 2, .incarnation = 1, .new_tokens = {1}, .k = 4}).tokens.empty());
  EXPECT_EQ(faults_, std::vector<draft_fault>{draft_fault::exception});
  user_->throws = false;
  user_->answer = {5};
  EXPECT_EQ(ask({.slot = 2, .incarnation = 1, .first_position = 1, .new_tokens = {2}, .k = 4}).tokens, (tokens_t{5}));
}

TEST(call_thread, calls_in_order_and_refuses_what_is_too_much) {
  std::promise<void> go;
  std::atomic<int> done = 0;
  {
    call_thread thread(2);
    std::promise<void> started;
    EXPECT_TRUE(thread.push([&] {
      started.set_value();
      go.get_future().wait();
    }));
    started.get_future().wait();
    EXPECT_TRUE(thread.push([&] { EXPECT_EQ(done++, 0); }));
    std::promise<void> last;
    EXPECT_TRUE(thread.push([&] {
      EXPECT_EQ(done++, 1);
      last.set_value();
    }));
    EXPECT_FALSE(thread.push([&] { done = 100; }));
    go.set_value();
    last.get_future().wait();
  }
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace tandem

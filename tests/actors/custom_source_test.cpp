#include "actors/custom_source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "actors/call_thread.hpp"
#include "actors/custom_caller.hpp"

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

std::shared_ptr<draft_work> work_on(slot_id slot, std::int32_t prompt_length) {
  auto work = std::make_shared<draft_work>();
  work->opened.emplace_back();
  work->opened.back().slot = slot;
  work->opened.back().prompt_length = prompt_length;
  return work;
}

proposal question_about(slot_id slot) {
  return {.slot = slot, .incarnation = 1, .new_tokens = tokens_t(9, 1), .k = 2, .ticket_row = 0};
}

/// A thread that takes one more call while it makes one that lasts until the end.
class custom_caller_test : public ::testing::Test {
 protected:
  custom_caller_test() {
    thread_->push([opened = gate_.get_future().share()] { opened.wait(); });
    while (!thread_->push([] {})) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// Answered at once: the queue is full.
  void ask_in_vain(std::shared_ptr<draft_work> work) {
    work->step = ++step_;
    bool answered = false;
    caller_.ask(std::move(work), [&](const draft_work&, const draft_outcome& outcome) {
      EXPECT_TRUE(outcome.ok && outcome.entries.empty());
      EXPECT_EQ(outcome.step, step_);
      answered = true;
    });
    ASSERT_TRUE(answered);
  }
  /// What is known of the slot's prompt when the queue has room again.
  std::int32_t prompt_length_of(slot_id slot) {
    auto work = std::make_shared<draft_work>();
    work->proposals = {question_about(slot)};
    work->drafts = std::make_shared<ticket>(1);
    std::promise<void> done;
    while (true) {
      std::atomic<bool> asked = false;
      const auto answer = [&](const draft_work&, const draft_outcome& outcome) {
        asked = !outcome.entries.empty();
        done.set_value();
      };
      caller_.ask(work, answer);
      done.get_future().wait();
      if (asked) return user_->prompt_length;
      done = {};
    }
  }
  std::promise<void> gate_;
  std::shared_ptr<scripted_drafts> user_ = std::make_shared<scripted_drafts>();
  std::shared_ptr<call_thread> thread_ = std::make_shared<call_thread>(1);
  custom_caller caller_{{user_, 50, [](draft_fault) {}}, thread_};
  step_id step_ = 0;
};

TEST_F(custom_caller_test, slots_that_opened_while_the_thread_took_no_calls_are_known_later) {
  ask_in_vain(work_on(2, 7));
  ask_in_vain(work_on(3, 5));
  auto reopened = work_on(3, 6);
  reopened->closed = {3};
  ask_in_vain(reopened);
  gate_.set_value();
  EXPECT_EQ(prompt_length_of(2), 7);
  EXPECT_EQ(prompt_length_of(3), 6);
}

TEST(slot_changes, a_slot_that_closed_again_is_not_opened) {
  slot_changes changes;
  changes.add(*work_on(2, 7));
  draft_work closing;
  closing.closed = {2};
  changes.add(closing);
  changes.add(closing);
  EXPECT_TRUE(changes.opened.empty());
  EXPECT_EQ(changes.closed, (std::vector<slot_id>{2}));
  changes.add(*work_on(2, 8));
  ASSERT_EQ(changes.opened.size(), 1u);
  EXPECT_EQ(changes.opened[0].prompt_length, 8);
}

}  // namespace
}  // namespace tandem

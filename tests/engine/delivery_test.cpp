#include "engine/delivery.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "config/limits.hpp"
#include "engine/collected_answer.hpp"

namespace tandem::engine {
namespace {

generation_event piece(std::uint64_t id, const std::string& text, bool last = false) {
  generation_event event;
  event.id = request_id{id};
  event.text = text;
  event.tokens = {static_cast<token_id>(text.size())};
  if (last) event.end = finish{};
  return event;
}

/// Collects what one request hears.
struct listener {
  std::string text;
  int answers = 0;
  int ends = 0;

  request_handlers handlers() {
    return {[this](const submission_answer&) { ++answers; },
            [this](generation_event event) {
              text += event.text;
              ends += event.end.has_value();
            }};
  }
};

TEST(delivery, events_that_came_before_the_listener_wait_for_it) {
  delivery events;
  listener heard;
  events.answer({request_id{1}, {}, nullptr});
  events.post({piece(1, "a"), piece(1, "b")});
  events.attach(request_id{1}, 1, heard.handlers());
  events.post({piece(1, "c", true)});
  events.flush();
  EXPECT_EQ(heard.text, "abc");
  EXPECT_EQ(heard.answers, 1);
  EXPECT_EQ(heard.ends, 1);
}

TEST(delivery, requests_do_not_hear_each_other) {
  delivery events;
  listener first;
  listener second;
  events.attach(request_id{1}, 1, first.handlers());
  events.attach(request_id{2}, 1, second.handlers());
  events.post({piece(1, "a"), piece(2, "x"), piece(1, "b", true), piece(2, "y", true)});
  events.flush();
  EXPECT_EQ(first.text, "ab");
  EXPECT_EQ(second.text, "xy");
}

TEST(delivery, a_slow_listener_loses_no_text_and_what_waits_stays_bounded) {
  delivery events;
  listener heard;
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  request_handlers slow = heard.handlers();
  slow.answer = [opened](const submission_answer&) { opened.wait(); };
  events.attach(request_id{1}, 1, std::move(slow));
  events.answer({request_id{1}, {}, nullptr});
  const std::size_t pieces = limits::kMaxUndeliveredEvents + 1000;
  for (std::size_t index = 0; index < pieces; ++index) events.post({piece(1, "a")});
  events.post({piece(1, "z", true)});
  gate.set_value();
  events.flush();
  EXPECT_EQ(heard.text.size(), pieces + 1);
  EXPECT_EQ(heard.text.back(), 'z');
  EXPECT_EQ(heard.ends, 1);
}

TEST(delivery, a_listener_may_attach_another) {
  delivery events;
  listener second;
  request_handlers first;
  first.event = [&](generation_event) { events.attach(request_id{2}, 1, second.handlers()); };
  events.attach(request_id{1}, 1, std::move(first));
  events.post({piece(1, "a", true), piece(2, "b", true)});
  events.flush();
  events.flush();
  EXPECT_EQ(second.text, "b");
}

TEST(delivery, joining_events_keeps_every_field) {
  generation_event first = piece(1, "ab");
  generation_event second = piece(1, "c", true);
  second.stats.completion_tokens = 2;
  second.logprobs = {token_logprobs{}};
  join_events(first, std::move(second));
  EXPECT_EQ(first.text, "abc");
  EXPECT_EQ(first.tokens, (std::vector<token_id>{2, 1}));
  EXPECT_TRUE(first.end.has_value());
  EXPECT_EQ(first.stats.completion_tokens, 2);
  EXPECT_EQ(first.logprobs.size(), 1u);
}

TEST(collected_answer, is_complete_when_every_choice_ended) {
  collected_answer answer(2);
  EXPECT_FALSE(answer.complete());
  answer.add(piece(1, "a", true));
  EXPECT_FALSE(answer.complete());
  generation_event other = piece(1, "b", true);
  other.choice = 1;
  answer.add(std::move(other));
  EXPECT_TRUE(answer.complete());
}

}  // namespace
}  // namespace tandem::engine

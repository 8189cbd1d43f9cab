// Turns of requests on one socket.

#include "net/responses/request_lanes.hpp"

#include <gtest/gtest.h>

#include "config/limits.hpp"

namespace tandem::net {
namespace {

response_request request(const std::string& lane, const std::string& instructions, bool concurrent = false) {
  response_request made;
  made.stream_id = lane;
  made.instructions = instructions;
  made.concurrent = concurrent;
  return made;
}

bool wait(request_lanes& lanes, const std::string& lane, const std::string& name, std::size_t bytes = 1) {
  response_request made = request(lane, name);
  return lanes.wait(made, bytes);
}

TEST(request_lanes, requests_of_a_lane_take_turns_and_lanes_do_not_wait_for_each_other) {
  request_lanes lanes;
  EXPECT_TRUE(lanes.may_run(request("a", "1")));
  lanes.note_begin("a");
  EXPECT_FALSE(lanes.may_run(request("a", "2")));
  EXPECT_TRUE(lanes.may_run(request("a", "2", true)));
  EXPECT_TRUE(lanes.may_run(request("b", "1")));
  EXPECT_TRUE(wait(lanes, "a", "2") && wait(lanes, "a", "3"));
  EXPECT_FALSE(lanes.next("a"));
  lanes.note_end("a");
  EXPECT_FALSE(lanes.may_run(request("a", "4")));  // others were first
  EXPECT_EQ(lanes.next("a")->instructions, "2");
  lanes.note_begin("a");
  lanes.note_end("a");
  EXPECT_EQ(lanes.next("a")->instructions, "3");
  EXPECT_FALSE(lanes.next("a"));
  EXPECT_TRUE(lanes.may_run(request("a", "4")));
  EXPECT_EQ(lanes.waiting(), 0u);
}

TEST(request_lanes, what_waits_is_bounded_and_given_back) {
  request_lanes lanes;
  lanes.note_begin("a");
  const std::size_t half = limits::kMaxWebSocketMessageBytes / 2;
  EXPECT_TRUE(wait(lanes, "a", "1", half) && wait(lanes, "b", "1", half));
  response_request late = request("a", "2");
  EXPECT_FALSE(lanes.wait(late, 1));
  EXPECT_EQ(late.instructions, "2");
  EXPECT_EQ(lanes.drop("a"), 1u);
  EXPECT_EQ(lanes.drop("none"), 0u);
  EXPECT_TRUE(lanes.wait(late, half));
  EXPECT_EQ(lanes.waiting(), 2u);
  lanes.clear();
  EXPECT_EQ(lanes.waiting(), 0u);
  EXPECT_TRUE(wait(lanes, "a", "1", 2 * half));
}

}  // namespace
}  // namespace tandem::net

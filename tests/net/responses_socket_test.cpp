// GET /v1/responses as a WebSocket: lanes, steering, flow control, coming back.

#include <chrono>
#include <string>

#include "tests/net/edge.hpp"
#include "tests/net/ws_client.hpp"

namespace tandem::net::test {
namespace {

std::string text_of(const std::string& json, const std::string& name) {
  const std::string mark = "\"" + name + "\":\"";
  const std::size_t at = json.find(mark);
  return at == std::string::npos ? ""
                                 : json.substr(at + mark.size(), json.find('"', at + mark.size()) - at - mark.size());
}

long number_of(const std::string& json, const std::string& name) {
  const std::string mark = "\"" + name + "\":";
  const std::size_t at = json.find(mark);
  return at == std::string::npos ? -1 : std::atol(json.c_str() + at + mark.size());
}

class responses_client : public ws_client {
 public:
  explicit responses_client(std::uint16_t port, const std::string& fields = {})
      : ws_client(port, fields, "/v1/responses") {}
  void create(const std::string& input, const std::string& more = {}) {
    text(R"({"type":"response.create","input":")" + input + "\"" + more + "}");
  }
  /// The next event of a type; those before it are dropped, but none of another response's end.
  std::string event(const std::string& type) {
    while (true) {
      const ws_frame got = message();
      if (got.opcode != 1) return "closed before " + type;
      if (text_of(got.payload, "type") == type) return got.payload;
    }
  }
};

class responses_socket : public edge {
 protected:
  std::string messages(std::size_t request) {
    return std::get<chat_prompt>(runtime_->submitted()[request].prompt).messages_json;
  }
  /// Waits until the runtime has `count` requests, and gives the last one's messages.
  std::string after(std::size_t count) {
    return runtime_->wait_for_submitted(count) ? messages(count - 1) : "nothing came";
  }
};

TEST_F(responses_socket, a_response_is_told_event_by_event_with_its_lane) {
  open();
  responses_client client(port());
  ASSERT_EQ(client.handshake.status, 101);
  client.create("hi", R"(,"stream_id":"lane \"1\"")");
  const std::string wanted[] = {"response.created",           "response.in_progress",
                                "response.output_item.added", "response.content_part.added",
                                "response.output_text.delta", "response.output_text.delta",
                                "response.output_text.delta", "response.output_text.done",
                                "response.content_part.done", "response.output_item.done",
                                "response.completed"};
  std::string id;
  for (std::size_t number = 0; number < std::size(wanted); ++number) {
    const std::string event = client.message().payload;
    if (number == 0) id = text_of(event, "id");
    EXPECT_EQ(text_of(event, "type"), wanted[number]);
    const std::string tail = ",\"sequence_number\":" + std::to_string(number) + ",\"response_id\":\"" + id +
                             R"(","stream_id":"lane \"1\""})";
    EXPECT_TRUE(event.ends_with(tail)) << event;
  }
}

TEST_F(responses_socket, requests_of_a_lane_run_in_order_and_lanes_beside_each_other) {
  runtime_->hold = true;
  open();
  responses_client client(port());
  client.create("first");
  client.create("second");
  client.create("other", R"(,"stream_id":"b")");
  EXPECT_NE(after(2).find("other"), std::string::npos);  // the second waits for the first
  client.create("beside", R"(,"concurrent":true)");
  EXPECT_NE(after(3).find("beside"), std::string::npos);
  runtime_->change([this] { runtime_->hold = false; });
  runtime_->release();
  EXPECT_NE(after(4).find("second"), std::string::npos);
  for (int i = 0; i < 4; ++i) EXPECT_NE(client.event("response.completed").find("Hello, world!"), std::string::npos);
}

TEST_F(responses_socket, mistakes_are_error_events_and_the_socket_stays) {
  open();
  responses_client client(port());
  const struct {
    std::string event;
    std::string param;
    int status;
  } cases[] = {
      {"{", "", 400},
      {"[]", "", 400},
      {"{}", "type", 400},
      {R"({"type":"response.guess"})", "type", 400},
      {R"({"type":"response.create"})", "input", 400},
      {R"({"type":"response.create","input":"x","temperature":-1,"stream_id":"s"})", "temperature", 400},
      {R"({"type":"response.create","input":"x","previous_response_id":"resp_none"})", "previous_response_id", 404},
      {R"({"type":"response.create","input":"x","model":"nobody"})", "model", 404},
      {R"({"type":"response.cancel","response_id":"resp_none"})", "response_id", 404},
      {R"({"type":"response.pause"})", "response_id", 400},
      {R"({"type":"response.pause","response_id":"resp_none"})", "response_id", 404},
      {R"({"type":"response.resume","response_id":"resp_none"})", "response_id", 404},
      {R"({"type":"response.resume_from","response_id":"resp_none","sequence_number":3})", "response_id", 404},
      {R"({"type":"response.resume_from","response_id":"r","sequence_number":"3"})", "sequence_number", 400},
  };
  for (const auto& each : cases) {
    client.text(each.event);
    const std::string answer = client.message().payload;
    EXPECT_EQ(text_of(answer, "type"), "error") << answer;
    EXPECT_EQ(text_of(answer, "param"), each.param) << answer;
    EXPECT_EQ(number_of(answer, "status"), each.status) << answer;
    EXPECT_NE(text_of(answer, "message"), "") << answer;
  }
  client.create("hi");
  EXPECT_NE(client.event("response.completed"), "");
}

TEST_F(responses_socket, a_refusal_of_the_engine_names_the_lane_and_the_next_request_runs) {
  open();
  responses_client client(port());
  runtime_->change([this] { runtime_->refuse = error{error_code::overloaded, "The queue is full.", {}}; });
  client.create("refused", R"(,"stream_id":"s")");
  const std::string answer = client.event("error");
  EXPECT_EQ(number_of(answer, "status"), 429);
  EXPECT_EQ(text_of(answer, "stream_id"), "s");
  runtime_->change([this] { runtime_->refuse.reset(); });
  client.create("taken", R"(,"stream_id":"s")");
  EXPECT_EQ(text_of(client.event("response.completed"), "stream_id"), "s");
}

TEST_F(responses_socket, requests_of_a_socket_count_as_its_keys) {
  runtime_->hold = true;
  server_options options;
  options.api_keys = {"key"};
  options.max_requests_per_key = 1;
  open(options);
  responses_client client(port(), "Sec-WebSocket-Protocol: tandem, api-key.a2V5\r\n");
  client.create("one");
  client.event("response.in_progress");
  client.create("two", R"(,"stream_id":"b")");
  EXPECT_EQ(number_of(client.event("error"), "status"), 429);
  ws_client other(port(), "Authorization: Bearer key\r\n");
  other.text(R"({"id":1,"prompt":"x"})");
  EXPECT_NE(other.message().payload.find("max-requests-per-key"), std::string::npos);
  runtime_->change([this] { runtime_->hold = false; });
  runtime_->release();
  client.event("response.completed");
  client.create("three");
  EXPECT_NE(client.event("response.completed").find("Hello"), std::string::npos);
}

TEST_F(responses_socket, cancelling_one_ends_it_and_cancelling_a_lane_ends_all_of_it) {
  runtime_->hold = true;
  open();
  responses_client client(port());
  client.create("one");
  const std::string id = text_of(client.event("response.created"), "id");
  client.text(R"({"type":"response.cancel","response_id":")" + id + "\"}");
  EXPECT_NE(client.event("response.incomplete").find(R"("status":"cancelled")"), std::string::npos);
  client.create("two", R"(,"stream_id":"s")");
  client.create("three", R"(,"stream_id":"s")");
  client.event("response.created");
  client.text(R"({"type":"response.cancel","stream_id":"s"})");
  EXPECT_NE(client.event("error").find("cancelled before it began"), std::string::npos);
  EXPECT_NE(client.event("response.incomplete").find(R"("status":"cancelled")"), std::string::npos);
  EXPECT_EQ(runtime_->submitted().size(), 2U);
}

TEST_F(responses_socket, steering_ends_a_response_and_its_successor_goes_on_from_it) {
  runtime_->hold = true;
  open();
  responses_client client(port());
  client.create("write", R"(,"stream_id":"s","instructions":"I","temperature":0.25)");
  const std::string id = text_of(client.event("response.created"), "id");
  runtime_->change([this] { runtime_->hold = false; });
  client.text(R"({"type":"response.steer","previous_response_id":")" + id + R"(","input":"shorter"})");
  const std::string accepted = client.event("response.steer.accepted");
  EXPECT_EQ(text_of(accepted, "previous_response_id"), id);
  EXPECT_TRUE(text_of(accepted, "id").starts_with("steer_")) << accepted;
  EXPECT_EQ(number_of(accepted, "sequence_number"), 2);
  EXPECT_NE(client.event("response.incomplete").find(R"("incomplete_details":{"reason":"steered"})"),
            std::string::npos);
  const std::string created = client.event("response.created");
  EXPECT_EQ(text_of(created, "previous_response_id"), id);
  EXPECT_EQ(text_of(created, "stream_id"), "s");
  EXPECT_NE(created.find(R"("temperature":0.25)"), std::string::npos);
  EXPECT_EQ(after(2), R"([{"role":"system","content":"I"},{"role":"user","content":"write"},)"
                      R"({"role":"assistant","content":""},{"role":"user","content":"shorter"}])");
  client.event("response.completed");
}

TEST_F(responses_socket, steering_waits_for_the_results_of_functions) {
  server_options options;
  options.tool_calls = tool_call_format::hermes;
  runtime_->hold = true;
  open(options);
  responses_client client(port());
  client.create("hi", R"(,"tools":[{"type":"function","name":"f"}])");
  const std::string id = text_of(client.event("response.created"), "id");
  runtime_->change([this] {
    runtime_->hold = false;
    runtime_->on_cancel = {{"<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", false}, {"", true}};
  });
  client.text(R"({"type":"response.steer","previous_response_id":")" + id + R"(","input":"also this"})");
  const std::string call_id = text_of(client.event("response.function_call_arguments.done"), "item_id");
  EXPECT_NE(call_id, "");
  client.event("response.completed");
  const std::string pending = client.event("response.steer.pending");
  EXPECT_NE(pending.find(R"("reason":"waiting_for_required_input","required_input":[{"type":"function_call_output")"),
            std::string::npos)
      << pending;
  client.text(R"({"type":"response.create","previous_response_id":")" + id +
              R"(","input":[{"type":"function_call_output","call_id":")" + text_of(pending, "call_id") +
              R"(","output":"42"}]})");
  client.event("response.completed");
  EXPECT_NE(after(2).find("also this"), std::string::npos);
}

TEST_F(responses_socket, steering_that_cannot_be_used_comes_back) {
  open();
  responses_client client(port());
  client.create("hi");
  const std::string id = text_of(client.event("response.completed"), "id");
  const struct {
    std::string target;
    std::string input;
    std::string code;
  } cases[] = {
      {id, R"("late")", "response_already_completed"},
      {"resp_none", R"("x")", "response_not_found"},
      {id, "[]", "invalid_input"},
      {id, R"([{"role":"system","content":"x"}])", "invalid_input"},
      {id, R"([{"type":"function_call_output","call_id":"c","output":"x"}])", "invalid_input"},
  };
  for (const auto& each : cases) {
    client.text(R"({"type":"response.steer","previous_response_id":")" + each.target + R"(","input":)" + each.input +
                "}");
    const std::string failed = client.event("response.steer.failed");
    EXPECT_EQ(text_of(failed, "code"), each.code) << failed;
    EXPECT_NE(failed.find("\"input\":" + each.input), std::string::npos) << failed;
  }
}

TEST_F(responses_socket, a_response_that_is_not_stored_goes_on_on_its_socket_only) {
  open();
  responses_client client(port());
  client.create("secret", R"(,"store":false)");
  const std::string id = text_of(client.event("response.completed"), "id");
  client.create("next", R"(,"previous_response_id":")" + id + "\"");
  EXPECT_NE(after(2).find("secret"), std::string::npos);
  responses_client other(port());
  other.create("next", R"(,"previous_response_id":")" + id + "\"");
  EXPECT_EQ(number_of(other.event("error"), "status"), 404);
}

TEST_F(responses_socket, generate_false_prepares_a_conversation) {
  open();
  responses_client client(port());
  client.create("context", R"(,"generate":false)");
  const std::string id = text_of(client.event("response.completed"), "id");
  EXPECT_TRUE(runtime_->submitted().empty());
  client.create("go", R"(,"previous_response_id":")" + id + "\"");
  EXPECT_EQ(after(1), R"([{"role":"user","content":"context"},{"role":"user","content":"go"}])");
}

TEST_F(responses_socket, a_paused_response_waits_while_others_go_on) {
  runtime_->hold = true;
  open();
  responses_client client(port());
  client.create("paused", R"(,"stream_id":"p")");
  const std::string id = text_of(client.event("response.in_progress"), "id");
  client.text(R"({"type":"response.pause","response_id":")" + id + "\"}");
  EXPECT_EQ(number_of(client.event("response.paused"), "last_sequence_number"), 1);
  runtime_->change([this] { runtime_->hold = false; });
  runtime_->release();
  client.create("other", R"(,"stream_id":"o")");
  for (std::string event; text_of(event, "type") != "response.completed";) {
    event = client.message().payload;
    EXPECT_EQ(text_of(event, "stream_id"), "o") << event;
  }
  client.text(R"({"type":"response.resume","response_id":")" + id + "\"}");
  client.event("response.resumed");
  EXPECT_EQ(number_of(client.event("response.output_item.added"), "sequence_number"), 2);
  EXPECT_EQ(text_of(client.event("response.completed"), "stream_id"), "p");
}

TEST_F(responses_socket, events_of_a_lane_never_overtake_those_of_its_response_before) {
  runtime_->hold = true;
  open();
  responses_client client(port());
  client.create("first");
  const std::string id = text_of(client.event("response.in_progress"), "id");
  client.text(R"({"type":"response.pause","response_id":")" + id + "\"}");
  client.event("response.paused");
  runtime_->change([this] { runtime_->hold = false; });
  runtime_->release();
  client.create("second");
  EXPECT_NE(after(2).find("second"), std::string::npos);  // it runs, and its events wait
  client.create("other", R"(,"stream_id":"o")");
  EXPECT_EQ(text_of(client.event("response.completed"), "stream_id"), "o");
  client.text(R"({"type":"response.resume","response_id":")" + id + "\"}");
  client.event("response.resumed");
  EXPECT_EQ(text_of(client.event("response.completed"), "response_id"), id);
  EXPECT_NE(text_of(client.event("response.created"), "id"), id);
  client.event("response.completed");
}

TEST_F(responses_socket, a_paused_response_whose_events_pile_up_is_let_go_and_the_socket_stays) {
  runtime_->hold = true;
  open();
  responses_client client(port());
  client.create("much", R"(,"stream_id":"m")");
  const std::string id = text_of(client.event("response.in_progress"), "id");
  client.text(R"({"type":"response.pause","response_id":")" + id + "\"}");
  client.event("response.paused");
  runtime_->change([this] {
    runtime_->hold = false;
    runtime_->script.assign(6, {std::string(1 << 20, 'x'), false});
    runtime_->script.push_back({"", true});
  });
  runtime_->release();
  client.create("hi", R"(,"generate":false,"stream_id":"o")");
  client.event("response.completed");
  client.text(R"({"type":"response.resume","response_id":")" + id + "\"}");
  EXPECT_NE(client.event("error").find("were not read for too long"), std::string::npos);
  raw_client plain(port());
  raw_response whole = plain.request("GET", "/v1/responses/" + id);
  while (text_of(whole.body, "status") == "in_progress") whole = plain.request("GET", "/v1/responses/" + id);
  EXPECT_GT(whole.body.size(), 6U << 20);
  client.create("still", R"(,"generate":false)");
  client.event("response.completed");
}

TEST_F(responses_socket, a_client_that_lost_its_socket_comes_back_to_where_it_was) {
  runtime_->hold = true;
  server_options options;
  options.io_threads = 2;  // the second socket lives on another thread
  open(options);
  std::string id;
  {
    responses_client client(port());
    client.create("go on");
    id = text_of(client.event("response.in_progress"), "id");
    client.raw.close();
  }
  responses_client again(port());
  again.text(R"({"type":"response.resume_from","response_id":")" + id +
             R"(","sequence_number":0,"stream_id":"again"})");
  EXPECT_EQ(number_of(again.event("response.in_progress"), "sequence_number"), 1);
  again.text(R"({"type":"response.resume_from","response_id":")" + id + R"(","sequence_number":0})");
  EXPECT_NE(again.event("error").find("already"), std::string::npos);
  runtime_->release();
  const std::string last = again.event("response.completed");
  EXPECT_EQ(number_of(last, "sequence_number"), 10);
  EXPECT_EQ(text_of(last, "stream_id"), "again");
  EXPECT_TRUE(runtime_->cancelled().empty());
  again.text(R"({"type":"response.resume_from","response_id":")" + id +
             R"(","sequence_number":8})");  // it ended: again
  EXPECT_EQ(number_of(again.message().payload, "sequence_number"), 9);
  EXPECT_EQ(number_of(again.message().payload, "sequence_number"), 10);
  again.text(R"({"type":"response.resume_from","response_id":")" + id + R"(","sequence_number":11})");
  EXPECT_EQ(text_of(again.event("error"), "param"), "sequence_number");
}

TEST_F(responses_socket, who_does_not_come_back_frees_the_engine_and_who_says_goodbye_does_so_at_once) {
  runtime_->hold = true;
  server_options options;
  options.timeouts.detached = std::chrono::milliseconds(50);
  open(options);
  {
    responses_client lost(port());
    lost.create("lost");
    lost.event("response.in_progress");
  }
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
  responses_client polite(port());
  polite.create("bye");
  polite.event("response.in_progress");
  polite.raw.send(ws_client::frame(8, std::string("\x03\xE8", 2)));
  EXPECT_TRUE(runtime_->wait_for_cancelled(2));
  {
    responses_client unstored(port());
    unstored.create("unstored", R"(,"store":false)");
    unstored.event("response.in_progress");
  }
  EXPECT_TRUE(runtime_->wait_for_cancelled(3));
}

TEST_F(responses_socket, shutting_down_lets_responses_end_then_closes_with_1001) {
  runtime_->hold = true;
  open();
  responses_client client(port());
  client.create("last");
  client.event("response.in_progress");
  server_->stop_accepting();
  client.create("too late");
  EXPECT_EQ(number_of(client.event("error"), "status"), 503);
  runtime_->release();
  client.event("response.completed");
  EXPECT_EQ(client.next().close_code(), 1001);
}

TEST_F(responses_socket, C6_many_lanes_with_pings_cancels_and_pauses_do_not_collide) {
  runtime_->script.assign(50, {"0123456789", false});
  runtime_->script.push_back({"", true});
  open();
  responses_client client(port());
  for (int i = 0; i < 64; ++i) {
    client.create("x", R"(,"stream_id":")" + std::to_string(i) + "\"");
    client.raw.send(ws_client::frame(9, "p"));
  }
  std::size_t ends = 0;
  std::size_t pongs = 0;
  while (ends < 64 || pongs < 64) {
    const ws_frame got = client.message();
    ASSERT_TRUE(got.opcode == 1 || got.opcode == 10) << got.opcode;
    pongs += got.opcode == 10;
    const std::string type = text_of(got.payload, "type");
    if (type == "response.created") {
      client.text(R"({"type":"response.pause","response_id":")" + text_of(got.payload, "id") + "\"}");
      client.text(R"({"type":"response.resume","response_id":")" + text_of(got.payload, "id") + "\"}");
    }
    ends += type == "response.completed";
  }
  client.create("cut", R"(,"stream_id":"z")");
  client.raw.close();
  probe();
}

}  // namespace
}  // namespace tandem::net::test

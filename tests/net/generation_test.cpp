// Requests through the edge to the runtime and back: answers, streams, cancels, back-pressure.

#include <string>

#include "tests/net/edge.hpp"

namespace tandem::net::test {
namespace {

using generation_edge = edge;
using std::chrono::milliseconds;

TEST_F(generation_edge, a_completion_carries_text_usage_and_finish_reason) {
  open();
  raw_client client(port());
  const auto answer = client.request("POST", "/v1/completions", kCompletion);
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find(R"("text":"Hello, world!")"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"("finish_reason":"stop")"), std::string::npos);
  EXPECT_NE(answer.body.find(R"("prompt_tokens":2,"completion_tokens":13)"), std::string::npos) << answer.body;
  EXPECT_TRUE(answer.has("X-Request-Id: cmpl-"));
}

TEST_F(generation_edge, a_list_of_prompts_with_n_choices_is_answered_in_order) {
  open();
  raw_client client(port());
  const auto answer = client.request("POST", "/generate", R"({"prompt":["a","b"],"n":2})");
  EXPECT_EQ(answer.body, R"({"text":["aHello, world!","aHello, world!","bHello, world!","bHello, world!"]})");
}

TEST_F(generation_edge, C4_a_stream_is_whole_events_that_end_with_done) {
  open();
  raw_client client(port());
  const auto answer = client.request("POST", "/v1/chat/completions",
                                     R"({"messages":[{"role":"user","content":"hi"}],"stream":true,
                                         "stream_options":{"include_usage":true}})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("Content-Type: text/event-stream"));
  EXPECT_TRUE(answer.body.starts_with("data: {\"id\":\"chatcmpl-"));
  EXPECT_LT(answer.body.find(R"("role":"assistant")"), answer.body.find(R"("content":"Hello")"));
  EXPECT_LT(answer.body.find(R"("finish_reason":"stop")"), answer.body.find(R"("choices":[],"usage":{)"));
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(client.request("GET", "/live").status, 200);  // the connection goes on
}

TEST_F(generation_edge, C4_a_failure_in_a_stream_is_one_error_event_and_the_end) {
  runtime_->script = {{"one", false}, {"two", false}, {"", true, finish_reason::error}};
  runtime_->failure_message = "The device lost the work; send it again.";
  open();
  raw_client client(port());
  const auto streamed = client.request("POST", "/v1/completions", kStream);
  EXPECT_EQ(streamed.status, 200);
  const auto at = streamed.body.find(R"(data: {"error":{"message":"The device lost)");
  ASSERT_NE(at, std::string::npos) << streamed.body;
  EXPECT_TRUE(streamed.body.ends_with("}}\n\n"));
  EXPECT_TRUE(client.at_end());
  raw_client second(port());
  EXPECT_EQ(second.request("POST", "/v1/completions", kCompletion).status, 500);
}

TEST_F(generation_edge, a_refusal_comes_before_the_first_byte_of_a_stream) {
  runtime_->refuse = error{error_code::overloaded, "The queue is full; try again later.", {}};
  open();
  raw_client client(port());
  const auto answer = client.request("POST", "/v1/completions", kStream);
  EXPECT_EQ(answer.status, 429);
  EXPECT_TRUE(answer.has("Retry-After: 1"));
  EXPECT_TRUE(answer.has("Content-Type: application/json"));
}

TEST_F(generation_edge, C4_a_silent_stream_is_kept_alive_by_comments) {
  runtime_->hold = true;
  server_options options;
  options.timeouts.stream_ping = milliseconds(20);
  open(options);
  raw_client client(port());
  client.send(raw_client::message("POST", "/v1/completions", kStream));
  ASSERT_TRUE(client.read_until(": ping\n\n"));
  runtime_->release();
  const auto answer = client.response();
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(generation_edge, a_client_that_leaves_while_it_waits_cancels_its_request) {
  runtime_->hold = true;
  open();
  {
    raw_client client(port());
    client.send(raw_client::message("POST", "/v1/completions", kCompletion));
    ASSERT_TRUE(runtime_->wait_for_submitted(1));
  }
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
  {
    raw_client client(port());
    client.send(raw_client::message("POST", "/v1/completions", kStream));
    ASSERT_TRUE(client.read_until("\r\n\r\n"));
  }
  EXPECT_TRUE(runtime_->wait_for_cancelled(2));
  probe();
}

TEST_F(generation_edge, a_client_that_leaves_in_the_queue_cancels_every_prompt) {
  runtime_->hold_answers = true;
  open();
  {
    raw_client client(port());
    client.send(raw_client::message("POST", "/v1/completions", R"({"prompt":["a","b","c"]})"));
    ASSERT_TRUE(runtime_->wait_for_submitted(3));
  }
  EXPECT_TRUE(runtime_->wait_for_cancelled(3));
}

TEST_F(generation_edge, a_reader_that_does_not_read_is_cut_off_and_its_request_cancelled) {
  runtime_->script.clear();
  for (int i = 0; i < 400; ++i) runtime_->script.push_back({std::string(100'000, 'x'), false});
  runtime_->script.push_back({"", true});
  server_options options;
  options.max_outbox_bytes = 1 << 20;
  open(options);
  raw_client slow(port());
  slow.send(raw_client::message("POST", "/v1/completions", kStream));
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
  probe();
}

TEST_F(generation_edge, a_request_cancelled_in_the_queue_has_ended_and_not_failed) {
  runtime_->hold_answers = true;
  open();
  for (const std::string& body : {kCompletion, kStream}) {
    raw_client waiting(port());
    waiting.send(raw_client::message("POST", "/v1/completions", body, "X-Request-Id: job-1\r\n"));
    ASSERT_TRUE(runtime_->wait_for_submitted(body == kStream ? 2 : 1));
    raw_client other(port());
    EXPECT_EQ(other.request("POST", "/v1/cancel/cmpl-job-1").status, 200);
    const auto answer = waiting.response();
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(answer.body.find(R"("finish_reason":"cancelled")"), std::string::npos) << answer.body;
  }
}

TEST_F(generation_edge, a_request_is_cancelled_by_the_id_its_client_chose) {
  runtime_->hold = true;
  open();
  raw_client waiting(port());
  waiting.send(raw_client::message("POST", "/v1/completions", kCompletion, "X-Request-Id: job-7\r\n"));
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  raw_client other(port());
  EXPECT_EQ(other.request("POST", "/v1/completions", kCompletion, "X-Request-Id: job-7\r\n").status, 400);
  EXPECT_EQ(other.request("POST", "/v1/completions", kCompletion, "X-Request-Id: a/b\r\n").status, 400);
  EXPECT_EQ(other.request("POST", "/v1/cancel/cmpl-job-8").status, 404);
  EXPECT_EQ(other.request("POST", "/v1/cancel/cmpl-job-7").status, 200);
  const auto answer = waiting.response();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find(R"("finish_reason":"cancelled")"), std::string::npos);
  EXPECT_EQ(other.request("POST", "/v1/cancel/cmpl-job-7").status, 404);
}

TEST_F(generation_edge, a_deadline_before_the_first_token_is_408_and_half_an_answer_after_it) {
  runtime_->script = {{"", true, finish_reason::timeout}};
  open();
  raw_client client(port());
  EXPECT_EQ(client.request("POST", "/v1/completions", R"({"prompt":"x","timeout_ms":5})").status, 408);
  EXPECT_EQ(runtime_->submitted().front().timeout, milliseconds(5));
  runtime_->change([&] { runtime_->script = {{"half", false}, {"", true, finish_reason::timeout}}; });
  const auto answer = client.request("POST", "/v1/completions", R"({"prompt":"x"})", "X-Request-Timeout-Ms: 9\r\n");
  EXPECT_NE(answer.body.find(R"("finish_reason":"timeout")"), std::string::npos);
  EXPECT_EQ(runtime_->submitted().back().timeout, milliseconds(9));
}

TEST_F(generation_edge, http_1_0_streams_end_with_the_connection) {
  open();
  raw_client client(port());
  client.send(
      "POST /generate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n"
      R"({"prompt":"hi","stream":true})");
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(client.buffer().find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(client.buffer().ends_with("{\"text\":[\"hiHello, world!\"]}\n"));
}

TEST_F(generation_edge, text_and_ids_are_turned_into_each_other) {
  open();
  raw_client client(port());
  EXPECT_EQ(client.request("POST", "/tokenize", R"({"prompt":"AB"})").body,
            R"({"count":2,"max_model_len":1024,"tokens":[65,66]})");
  EXPECT_EQ(client.request("POST", "/detokenize", R"({"tokens":[72,105]})").body, R"({"prompt":"Hi"})");
  EXPECT_EQ(client.request("POST", "/detokenize", R"({"tokens":[258]})").status, 400);
}

TEST_F(generation_edge, running_requests_end_before_the_server_does) {
  runtime_->hold = true;
  open();
  raw_client client(port());
  client.send(raw_client::message("POST", "/v1/completions", kCompletion));
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  server_->stop_accepting();
  runtime_->release();
  server_->stop(std::chrono::seconds(10));
  const auto answer = client.response();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("Connection: close"));
}

TEST_F(generation_edge, what_has_not_ended_by_the_bound_is_cancelled) {
  runtime_->hold = true;
  open();
  raw_client client(port());
  client.send(raw_client::message("POST", "/v1/completions", kStream));
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  server_->stop(milliseconds(20));
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
}

}  // namespace
}  // namespace tandem::net::test

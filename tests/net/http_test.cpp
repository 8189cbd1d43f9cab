// HTTP itself: framing, limits, times, connections. Cases D4, D5, D7, D8 of http.md, F2 of operations.md.

#include <chrono>
#include <string>
#include <thread>

#include "tests/net/edge.hpp"

namespace tandem::net::test {
namespace {

using http = edge;
using std::chrono::milliseconds;

TEST_F(http, D8_a_hundred_requests_share_one_connection_also_behind_refused_ones) {
  open();
  raw_client client(port());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client.request("POST", "/v1/completions", kCompletion).status, 200);
    if (i % 10 == 0) {
      EXPECT_EQ(client.request("POST", "/v1/completions", "{").status, 400);
      EXPECT_EQ(client.request("GET", "/nowhere").status, 404);
      EXPECT_EQ(client.request("GET", "/generate").status, 405);
    }
  }
}

TEST_F(http, D8_a_pipelined_pair_is_answered_in_order) {
  open();
  raw_client client(port());
  const std::string generate = R"({"prompt":"hi"})";
  client.send(raw_client::message("POST", "/v1/completions", kCompletion) +
              raw_client::message("POST", "/generate", generate) + raw_client::message("GET", "/live"));
  EXPECT_NE(client.response().body.find("text_completion"), std::string::npos);
  EXPECT_EQ(client.response().body, R"({"text":["hiHello, world!"]})");
  EXPECT_EQ(client.response().body, R"({"status":"live"})");
}

TEST_F(http, D8_a_body_up_to_the_limit_passes_and_one_byte_more_is_413_with_a_json_body) {
  server_options options;
  options.max_body_bytes = 2'000'000;
  open(options);
  const std::string frame = R"({"prompt":""})";
  for (const std::size_t size : {900'000u, 1'100'000u, 1'999'999u, 2'000'000u}) {
    raw_client client(port());
    const std::string body = R"({"prompt":")" + std::string(size - frame.size(), 'x') + "\"}";
    EXPECT_EQ(client.request("POST", "/v1/completions", body).status, 200) << size;
  }
  raw_client client(port());
  const std::string body = R"({"prompt":")" + std::string(2'000'001 - frame.size(), 'x') + "\"}";
  const auto refused = client.request("POST", "/v1/completions", body);
  EXPECT_EQ(refused.status, 413);
  EXPECT_NE(refused.body.find(R"("type":"invalid_request_error")"), std::string::npos);
  EXPECT_TRUE(refused.has("Connection: close"));
  EXPECT_TRUE(client.at_end());
  probe();
}

TEST_F(http, A_client_that_pipelines_without_reading_waits_and_loses_nothing) {
  server_options options;
  options.max_outbox_bytes = 10'000;
  options.timeouts.header = milliseconds(100);
  open(options);
  raw_client client(port());
  constexpr int kRequests = 3'000;
  std::string all;
  for (int i = 0; i < kRequests; ++i) all += raw_client::message("GET", "/");
  std::thread sender([&] { client.send(all); });
  std::this_thread::sleep_for(milliseconds(500));  // the answers fill every buffer, longer than a header may take
  int answered = 0;
  while (answered < kRequests && client.response().status == 200) ++answered;
  sender.join();
  EXPECT_EQ(answered, kRequests);
}

TEST_F(http, Large_bodies_are_bounded_together_and_small_ones_always_pass) {
  server_options options;
  options.max_unfinished_body_bytes = 100'000;
  open(options);
  const auto with_body = [](std::size_t size) {
    return raw_client::message("POST", "/v1/completions", R"({"prompt":")" + std::string(size, 'x') + "\"}");
  };
  const std::string small = with_body(60'000);
  raw_client unfinished[2] = {raw_client(port()), raw_client(port())};
  for (raw_client& client : unfinished) client.send(small.substr(0, small.size() - 1));
  for (int i = 0; i < 20; ++i) probe();  // by now all of it was read
  raw_client large(port());
  large.send(with_body(80'000));
  const auto refused = large.response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: 1"));
  EXPECT_TRUE(refused.has("Connection: close"));
  for (raw_client& client : unfinished) {
    client.send(small.substr(small.size() - 1));
    EXPECT_EQ(client.response().status, 200);
  }
  raw_client again(port());
  again.send(with_body(80'000));
  EXPECT_EQ(again.response().status, 200);
}

TEST_F(http, D8_a_chunked_request_body_is_read_and_bounded) {
  server_options options;
  options.max_body_bytes = 1000;
  open(options);
  const std::string head =
      "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  raw_client client(port());
  client.send(head + "5\r\n{\"pro\r\n" + "c\r\nmpt\": \"hi\"  \r\n" + "1\r\n}\r\n0\r\n\r\n");
  EXPECT_EQ(client.response().body, R"({"text":["hiHello, world!"]})");
  client.send(head + "7d0\r\n" + std::string(2000, ' ') + "\r\n");
  EXPECT_EQ(client.response().status, 413);
}

TEST_F(http, D8_expect_continue_is_answered_at_once_or_refused) {
  open();
  raw_client client(port());
  const std::string head = "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
  client.send(head + "Expect: 100-continue\r\nContent-Length: 15\r\n\r\n");
  EXPECT_EQ(client.response().status, 100);
  client.send(R"({"prompt":"hi"})");
  EXPECT_EQ(client.response().status, 200);
  client.send(head + "Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(client.response().status, 413);

  raw_client second(port());
  second.send(head + "Expect: a miracle\r\nContent-Length: 15\r\n\r\n");
  EXPECT_EQ(second.response().status, 417);
  raw_client third(port());
  third.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n");
  EXPECT_EQ(third.response().status, 404);
}

TEST_F(http, D8_ambiguous_lengths_are_refused) {
  open();
  const std::string head = "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
  for (const std::string fields :
       {"Content-Length: 15\r\nContent-Length: 15\r\n", "Content-Length: 15\r\nContent-Length: 16\r\n",
        "Content-Length: 15, 15\r\n", "Content-Length: 15\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 15\r\n", "Content-Length: x\r\n", "Content-Length: -1\r\n"}) {
    raw_client client(port());
    client.send(head + fields + "\r\n" + R"({"prompt":"hi"})");
    EXPECT_EQ(client.response().status, 400) << fields;
    EXPECT_TRUE(client.at_end());
  }
  EXPECT_TRUE(runtime_->submitted().empty());
  probe();
}

TEST_F(http, D8_a_header_too_large_is_refused) {
  open();
  raw_client client(port());
  client.send("GET /live HTTP/1.1\r\nX-Large: " + std::string(64 << 10, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.response().status, 431);
}

TEST_F(http, D8_slow_senders_get_408) {
  server_options options;
  options.timeouts.header = milliseconds(100);
  options.timeouts.body = milliseconds(100);
  open(options);
  raw_client header(port());
  header.send("GET /li");
  EXPECT_EQ(header.response().status, 408);
  raw_client body(port());
  body.send("POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"p");
  EXPECT_EQ(body.response().status, 408);
}

TEST_F(http, an_idle_connection_is_closed_without_a_word) {
  server_options options;
  options.timeouts.idle = milliseconds(100);
  open(options);
  raw_client client(port());
  EXPECT_EQ(client.request("GET", "/live").status, 200);
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(client.buffer().empty());
}

TEST_F(http, garbage_and_tls_hellos_get_400) {
  open();
  for (const std::string& bytes : {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 14),
                                   std::string("GET /live\r\n\r\n"), std::string("GET  HTTP/1.1\r\n\r\n")}) {
    raw_client client(port());
    client.send(bytes);
    EXPECT_EQ(client.response().status, 400);
  }
  probe();
}

TEST_F(http, D7_errors_have_one_shape_and_the_right_status) {
  open();
  raw_client client(port());
  const auto unknown = client.request("GET", "/v1/nothing");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find(R"("code":"not_found")"), std::string::npos);
  const auto method = client.request("DELETE", "/v1/completions");
  EXPECT_EQ(method.status, 405);
  EXPECT_TRUE(method.has("Allow: POST"));
  for (const std::string model : {"no-such-model", " fake-model", "fake-model "}) {
    for (const std::string stream : {"false", "true"}) {
      const auto answer = client.request("POST", "/v1/completions",
                                         R"({"prompt":"x","model":")" + model + R"(","stream":)" + stream + "}");
      EXPECT_EQ(answer.status, 404) << model;
      EXPECT_NE(answer.body.find(R"("code":"model_not_found")"), std::string::npos);
    }
  }
  client.send("POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(client.response().status, 415);
}

TEST_F(http, D4_and_D5_bad_json_gets_400_on_every_endpoint_and_the_connection_stays) {
  open();
  raw_client client(port());
  std::string deep = R"({"x":)";
  for (int i = 0; i < 1'000'000; ++i) deep += '[';
  for (const std::string path : {"/generate", "/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"}) {
    for (const std::string& body : {std::string(), std::string("{"), std::string("{\"prompt\":\"\xFF\"}"),
                                    std::string("\xEF\xBB\xBF{}"), std::string("[]"), deep}) {
      const auto answer = client.request("POST", path, body);
      EXPECT_EQ(answer.status, 400) << path;
      EXPECT_NE(answer.body.find(R"({"error":{"message":")"), std::string::npos);
    }
  }
  probe();
}

TEST_F(http, head_is_get_without_a_body) {
  open();
  raw_client client(port());
  const auto head = client.request("HEAD", "/v1/models");
  EXPECT_EQ(head.status, 200);
  EXPECT_FALSE(head.has("Content-Length: 0"));
  EXPECT_NE(client.request("GET", "/v1/models").body.find("fake-model"), std::string::npos);
}

TEST_F(http, F3_while_the_model_loads_only_live_is_well) {
  open({}, false);
  raw_client client(port());
  EXPECT_EQ(client.request("GET", "/live").status, 200);
  EXPECT_EQ(client.request("GET", "/health").status, 503);
  const auto early = client.request("POST", "/v1/completions", kCompletion);
  EXPECT_EQ(early.status, 503);
  EXPECT_TRUE(early.has("Retry-After: 1"));
  server_->serve(runtime_);
  probe();
  runtime_->change([&] { runtime_->state.grammars_stuck = true; });
  const auto degraded = client.request("GET", "/health");
  EXPECT_EQ(degraded.status, 200);
  EXPECT_NE(degraded.body.find(R"("structured_output":"stuck")"), std::string::npos);
  runtime_->change([&] { runtime_->state.stuck = true; });
  EXPECT_EQ(client.request("GET", "/health").status, 503);
}

TEST_F(http, F2_a_port_in_use_is_refused_by_name_before_anything_is_loaded) {
  open();
  server_options options;
  options.port = port();
  const auto second = server::bind(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::io);
  EXPECT_NE(second.error().message.find(std::to_string(port())), std::string::npos);
  options.port = 0;
  options.host = "203.0.113.1";
  EXPECT_FALSE(server::bind(options));
  options.host = "no.such.host.invalid";
  EXPECT_FALSE(server::bind(options));
}

TEST_F(http, F2_a_quick_restart_gets_the_same_port) {
  open();
  raw_client client(port());
  EXPECT_EQ(client.request("GET", "/live").status, 200);
  server_options options;
  options.port = port();
  server_.reset();
  const auto again = server::bind(options);
  EXPECT_TRUE(again) << again.error().message;
}

TEST_F(http, keys_guard_everything_but_live_and_health) {
  server_options options;
  options.api_keys = {"secret-one", "secret-two"};
  open(options);
  raw_client client(port());
  EXPECT_EQ(client.request("GET", "/live").status, 200);
  EXPECT_EQ(client.request("GET", "/health").status, 200);
  for (const std::string fields : {"", "Authorization: Bearer secret\r\n", "Authorization: secret-one\r\n",
                                   "Authorization: Bearer \r\n", "Authorization: Bearer secret-onx\r\n"}) {
    const auto refused = client.request("GET", "/v1/models", {}, fields);
    EXPECT_EQ(refused.status, 401);
    EXPECT_NE(refused.body.find("invalid_api_key"), std::string::npos);
  }
  EXPECT_EQ(client.request("GET", "/v1/models", {}, "Authorization: Bearer secret-two\r\n").status, 200);
}

TEST_F(http, several_io_threads_serve_side_by_side) {
  server_options options;
  options.io_threads = 3;
  open(options);
  for (int i = 0; i < 12; ++i) {
    raw_client client(port());
    EXPECT_EQ(client.request("POST", "/v1/completions", kCompletion).status, 200);
  }
}

}  // namespace
}  // namespace tandem::net::test

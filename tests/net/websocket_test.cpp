// GET /ws with raw frames. Cases C6 and C7 of streaming.md.

#include <string>

#include "tests/net/edge.hpp"
#include "tests/net/ws_client.hpp"

namespace tandem::net::test {
namespace {

using websocket_edge = edge;
using std::chrono::milliseconds;

TEST_F(websocket_edge, many_requests_run_on_one_socket) {
  open();
  ws_client client(port());
  ASSERT_EQ(client.handshake.status, 101);
  EXPECT_TRUE(client.handshake.has("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
  for (int i = 0; i < 8; ++i) client.text(R"({"id":)" + std::to_string(i) + R"(,"prompt":"x"})");
  std::string all;
  std::size_t ends = 0;
  while (ends < 8) {
    const auto got = client.message();
    ASSERT_EQ(got.opcode, 1);
    all += got.payload;
    ends += got.payload.find("\"finish_reason\":\"stop\"") != std::string::npos;
  }
  EXPECT_NE(all.find(R"({"id":7,"text":"Hello","token_ids":[72,101,108,108,111]})"), std::string::npos) << all;
  EXPECT_EQ(runtime_->websockets(), 1);
}

TEST_F(websocket_edge, a_request_is_cancelled_by_its_id_and_all_by_closing) {
  runtime_->hold = true;
  open();
  ws_client client(port());
  for (const std::string id : {"1", "2", "3"}) client.text(R"({"id":")" + id + R"(","prompt":"x"})");
  ASSERT_TRUE(runtime_->wait_for_submitted(3));
  client.text(R"({"id":"2","cancel":true})");
  EXPECT_NE(client.until("cancelled").find(R"({"id":"2")"), std::string::npos);
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
  client.raw.send(ws_client::frame(8, "\x03\xE8"));
  EXPECT_EQ(client.next().close_code(), 1000);
  EXPECT_TRUE(client.raw.at_end());
  EXPECT_TRUE(runtime_->wait_for_cancelled(3));
}

TEST_F(websocket_edge, a_cancelled_request_ends_with_its_usage_as_every_other_does) {
  runtime_->hold = true;
  open();
  ws_client client(port());
  client.text(R"({"id":1,"prompt":"x"})");
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  client.text(R"({"id":1,"cancel":true})");
  const std::string last = client.until("cancelled");
  EXPECT_NE(last.find(R"("finish_reason":"cancelled","stop_reason":null,"usage":{"prompt_tokens":1)"),
            std::string::npos)
      << last;
}

TEST_F(websocket_edge, a_request_cancelled_in_the_queue_is_confirmed_and_its_id_is_free_again) {
  runtime_->hold_answers = true;
  open();
  ws_client client(port());
  client.text(R"({"id":1,"prompt":"x"})");
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  client.text(R"({"id":1,"cancel":true})");
  const std::string last = client.until("cancelled");
  EXPECT_NE(last.find(R"("token_ids":[],"finish_reason":"cancelled")"), std::string::npos) << last;
  EXPECT_EQ(last.find("error"), std::string::npos) << last;
  runtime_->change([this] { runtime_->hold_answers = false; });
  client.text(R"({"id":1,"prompt":"x"})");
  EXPECT_NE(client.until("usage").find(R"("finish_reason":"stop")"), std::string::npos);
}

TEST_F(websocket_edge, D4_bad_frames_get_an_error_and_the_socket_stays) {
  open();
  ws_client client(port());
  for (const std::string text : {"{", "[]", R"({"prompt":"x"})", R"({"id":1})", R"({"id":1,"prompt":"x","n":0})",
                                 R"({"id":1,"prompt":"\ud800"})"}) {
    client.text(text);
    const auto answer = client.message();
    EXPECT_EQ(answer.opcode, 1) << text;
    EXPECT_NE(answer.payload.find(R"("error":{"message")"), std::string::npos) << answer.payload;
  }
  client.text(R"({"id":1,"prompt":"x"})");
  EXPECT_NE(client.until("finish_reason"), "");
}

TEST_F(websocket_edge, an_id_in_use_is_refused) {
  runtime_->hold = true;
  open();
  ws_client client(port());
  client.text(R"({"id":1,"prompt":"x"})");
  client.text(R"({"id":1,"prompt":"y"})");
  EXPECT_NE(client.message().payload.find("id is running"), std::string::npos);
  EXPECT_TRUE(runtime_->wait_for_submitted(1));
}

TEST_F(websocket_edge, C7_a_message_over_the_limit_closes_with_1009_and_cancels) {
  runtime_->hold = true;
  open();
  ws_client client(port());
  client.text(R"({"id":1,"prompt":"x"})");
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  client.text(std::string(limits::kMaxWebSocketMessageBytes + 1, ' '));
  EXPECT_EQ(client.next().close_code(), 1009);
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
}

TEST_F(websocket_edge, C6_pings_cancels_and_requests_do_not_collide_with_frames_under_way) {
  runtime_->script.assign(50, {"0123456789", false});
  runtime_->script.push_back({"", true});
  open();
  ws_client client(port());
  for (int i = 0; i < 8; ++i) {
    client.text(R"({"id":)" + std::to_string(i) + R"(,"prompt":"x"})");
    for (int ping = 0; ping < 10; ++ping) client.raw.send(ws_client::frame(9, "p"));
    client.text(R"({"id":)" + std::to_string(i / 2) + R"(,"cancel":true})");
  }
  std::size_t pongs = 0;
  std::size_t ends = 0;
  while (ends < 8 || pongs < 80) {
    const auto got = client.message();
    ASSERT_TRUE(got.opcode == 1 || got.opcode == 10) << got.opcode;
    pongs += got.opcode == 10;
    ends += got.payload.find("finish_reason") != std::string::npos;
  }
  client.text(R"({"id":"last","prompt":"x"})");
  client.raw.close();  // in the middle of the writes
  probe();
}

TEST_F(websocket_edge, a_peer_that_answers_no_ping_is_cut_off) {
  server_options options;
  options.timeouts.idle = milliseconds(200);
  runtime_->hold = true;
  open(options);
  ws_client client(port());
  client.text(R"({"id":1,"prompt":"x"})");
  EXPECT_TRUE(client.raw.at_end());  // ours were answered by nobody
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
}

TEST_F(websocket_edge, shutting_down_closes_with_1001_when_the_last_request_has_ended) {
  runtime_->hold = true;
  open();
  ws_client idle(port());
  ws_client busy(port());
  ASSERT_EQ(idle.handshake.status, 101);
  busy.text(R"({"id":1,"prompt":"x"})");
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  server_->stop_accepting();
  EXPECT_EQ(idle.next().close_code(), 1001);
  runtime_->release();
  EXPECT_NE(busy.until("finish_reason"), "");
  EXPECT_EQ(busy.next().close_code(), 1001);
}

TEST_F(websocket_edge, a_page_of_another_origin_cannot_open_a_socket) {
  open();
  EXPECT_EQ(ws_client(port(), "Origin: http://elsewhere.example\r\n").handshake.status, 403);
  EXPECT_EQ(ws_client(port(), "Origin: null\r\n").handshake.status, 403);
  EXPECT_EQ(ws_client(port(), "Origin: http://x\r\n").handshake.status, 101);  // the Host of these clients
  EXPECT_EQ(ws_client(port()).handshake.status, 101);
}

TEST_F(websocket_edge, drafted_characters_are_told_when_asked_for) {
  runtime_->script = {{"H\xC3\xA4llo", false, finish_reason::stop, "011100"}, {"ab", true, finish_reason::stop, "11"}};
  open();
  ws_client client(port());
  client.text(R"({"id":1,"prompt":"x","include_drafts":true})");
  const std::string told = client.until("finish_reason");
  EXPECT_NE(told.find(R"("token_ids":[72,195,164,108,108,111],"drafts":[[1,3]]})"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("token_ids":[97,98],"drafts":[[0,2]],)"), std::string::npos) << told;
  client.text(R"({"id":1,"prompt":"x"})");
  EXPECT_EQ(client.until("finish_reason").find("drafts"), std::string::npos);
  client.text(R"({"id":1,"prompt":"x","include_drafts":1})");
  EXPECT_NE(client.message().payload.find("'include_drafts' must be true or false."), std::string::npos);
}

TEST_F(websocket_edge, wrong_upgrades_are_refused) {
  server_options options;
  options.api_keys = {"key"};
  open(options);
  EXPECT_EQ(ws_client(port()).handshake.status, 401);
  EXPECT_EQ(ws_client(port(), "Authorization: Bearer key\r\n").handshake.status, 101);
  raw_client plain(port());
  EXPECT_EQ(plain.request("GET", "/ws", {}, "Authorization: Bearer key\r\n").status, 426);
  raw_client old(port());
  old.send(
      "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nAuthorization: Bearer key\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n");
  EXPECT_EQ(old.response().status, 426);
}

}  // namespace
}  // namespace tandem::net::test

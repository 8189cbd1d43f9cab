// Group 7: closing. Group 10: what is sent after and around it.

#include "tests/net/websocket/conformance.hpp"

namespace tandem::net::test {
namespace {

std::string code_bytes(int code) {
  return {static_cast<char>(code >> 8), static_cast<char>(code)};
}

TEST_F(conformance, G7_a_close_is_answered_with_its_code_and_ends_the_connection) {
  for (const int code :
       {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999}) {
    ws_client client(port());
    client.raw.send(ws_client::frame(8, code_bytes(code) + "reason"));
    EXPECT_EQ(client.next().close_code(), code);
    EXPECT_TRUE(client.raw.at_end());
  }
}

TEST_F(conformance, G7_a_close_without_a_code_gets_one_without_a_code) {
  ws_client client(port());
  client.raw.send(ws_client::frame(8, ""));
  const ws_frame answer = client.next();
  EXPECT_EQ(answer.opcode, 8);
  EXPECT_EQ(answer.payload, "");
  EXPECT_TRUE(client.raw.at_end());
}

TEST_F(conformance, G7_codes_that_may_not_be_sent_close_with_1002) {
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
    EXPECT_EQ(close_after(ws_client::frame(8, code_bytes(code))), 1002) << code;
  }
}

TEST_F(conformance, G7_broken_close_frames) {
  EXPECT_EQ(close_after(ws_client::frame(8, "\x03")), 1002);
  EXPECT_EQ(close_after(ws_client::frame(8, code_bytes(1000) + std::string(124, 'x'))), 1002);
  EXPECT_EQ(close_after(ws_client::frame(8, code_bytes(1000) + "\xFF")), 1007);
  EXPECT_EQ(close_after(ws_client::frame(8, code_bytes(1000) + "\xE2\x82")), 1007);
  EXPECT_EQ(close_after(ws_client::frame(8, code_bytes(1000) + std::string(123, 'x'))), 1000);
}

TEST_F(conformance, G7_nothing_is_answered_behind_a_close) {
  ws_client client(port());
  client.raw.send(ws_client::frame(8, code_bytes(1000)) + ws_client::frame(9, "late") +
                  ws_client::frame(1, request("late")));
  EXPECT_EQ(client.next().close_code(), 1000);
  EXPECT_TRUE(client.raw.at_end());
  EXPECT_EQ(client.raw.buffer(), "");
  EXPECT_TRUE(runtime_->submitted().empty());
}

TEST_F(conformance, G7_a_close_inside_a_fragmented_message_is_answered) {
  EXPECT_EQ(close_after(ws_client::open_frame(1, "{") + ws_client::frame(8, code_bytes(1000))), 1000);
}

TEST_F(conformance, G7_closing_cancels_what_runs) {
  runtime_->change([this] { runtime_->hold = true; });
  ws_client client(port());
  client.text(request("held"));
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  client.raw.send(ws_client::frame(8, code_bytes(1000)));
  EXPECT_EQ(client.next().close_code(), 1000);
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
}

TEST_F(conformance, G10_a_message_may_follow_the_handshake_in_the_same_packet) {
  raw_client client(port());
  client.send(
      "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  EXPECT_EQ(client.response(true).status, 101);
  client.send(ws_client::frame(9, "p") + ws_client::frame(1, request("together")) + ws_client::frame(9, "q"));
  EXPECT_EQ(arrived(1), "together");
}

}  // namespace
}  // namespace tandem::net::test

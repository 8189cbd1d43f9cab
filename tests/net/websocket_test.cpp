// GET /ws with raw frames. Cases C6 and C7 of streaming.md.

#include <string>

#include "tests/net/edge.hpp"

namespace tandem::net::test {
namespace {

struct ws_frame {
  int opcode = -1;  ///< -1: the connection ended
  bool final = true;
  std::string payload;
  int close_code() const {
    if (opcode != 8 || payload.size() < 2) return 0;
    return (static_cast<unsigned char>(payload[0]) << 8) | static_cast<unsigned char>(payload[1]);
  }
};

/// RFC 6455 by hand, so that it can also be broken.
class ws_client {
 public:
  explicit ws_client(std::uint16_t port, const std::string& fields = {}) : raw(port) {
    raw.send("GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + fields +
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
    handshake = raw.response(true);
  }

  static std::string frame(int opcode, const std::string& payload, bool final = true, bool masked = true) {
    std::string out{static_cast<char>((final ? 0x80 : 0) | opcode)};
    const int mask_bit = masked ? 0x80 : 0;
    if (payload.size() < 126) {
      out += static_cast<char>(mask_bit | static_cast<int>(payload.size()));
    } else {
      const bool large = payload.size() > 0xFFFF;
      out += static_cast<char>(mask_bit | (large ? 127 : 126));
      for (int shift = large ? 56 : 8; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift);
    }
    if (masked) out.append(4, '\0');  // a mask of zeros leaves the payload as it is
    return out + payload;
  }
  void text(const std::string& payload) { raw.send(frame(1, payload)); }

  ws_frame next() {
    ws_frame out;
    const std::string head = raw.take_exactly(2);
    if (head.size() < 2) return out;
    out.opcode = head[0] & 0x0F;
    out.final = (head[0] & 0x80) != 0;
    std::size_t length = static_cast<std::size_t>(head[1] & 0x7F);
    if (length >= 126) {
      std::size_t wide = 0;
      for (const char byte : raw.take_exactly(length == 126 ? 2 : 8)) {
        wide = (wide << 8) | static_cast<unsigned char>(byte);
      }
      length = wide;
    }
    out.payload = raw.take_exactly(length);
    return out;
  }
  /// The next text message, joined from its fragments, or the frame that came instead.
  ws_frame message() {
    ws_frame whole = next();
    while (whole.opcode == 1 && !whole.final) {
      const ws_frame part = next();
      if (part.opcode != 0) return part;
      whole.payload += part.payload;
      whole.final = part.final;
    }
    return whole;
  }
  /// Frames up to and including one that holds `mark`.
  std::string until(const std::string& mark) {
    std::string all;
    while (all.find(mark) == std::string::npos) {
      const ws_frame got = message();
      if (got.opcode != 1) return all;
      all += got.payload + "\n";
    }
    return all;
  }

  raw_client raw;
  raw_response handshake;
};

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

TEST_F(websocket_edge, C7_a_request_in_one_byte_fragments_with_pings_between_is_understood) {
  open();
  ws_client client(port());
  const std::string text = R"({"id":1,"prompt":"x"})";
  for (std::size_t i = 0; i < text.size(); ++i) {
    client.raw.send(ws_client::frame(i == 0 ? 1 : 0, text.substr(i, 1), i + 1 == text.size()));
    if (i + 1 == text.size()) break;
    client.raw.send(ws_client::frame(9, "p"));
    const auto pong = client.next();
    EXPECT_EQ(pong.opcode, 10);
    EXPECT_EQ(pong.payload, "p");
  }
  EXPECT_NE(client.until("finish_reason"), "");
}

TEST_F(websocket_edge, C7_broken_frames_close_with_the_right_code) {
  open();
  const struct {
    std::string bytes;
    int code;
  } cases[] = {
      {ws_client::frame(1, "\"\xFF\""), 1007},
      {ws_client::frame(2, "{}"), 1003},
      {ws_client::frame(1, "{", false) + ws_client::frame(1, "}"), 1002},
      {ws_client::frame(9, std::string(126, 'x')), 1002},
      {ws_client::frame(9, "x", false), 1002},
      {ws_client::frame(1, "{}", true, false), 1002},
      {ws_client::frame(3, "{}"), 1002},
      {ws_client::frame(8, "\x03"), 1002},
      {ws_client::frame(8, "\x03\xED"), 1002},
      {ws_client::frame(8, "\x03\xE8\xFF"), 1002},
      {std::string("\x81\xFF\x3F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0", 14), 1009},
  };
  for (const auto& each : cases) {
    ws_client client(port());
    client.raw.send(each.bytes);
    const auto answer = client.next();
    EXPECT_EQ(answer.opcode, 8) << each.code;
    EXPECT_EQ(answer.close_code(), each.code);
    EXPECT_TRUE(client.raw.at_end());
  }
  probe();
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

TEST_F(websocket_edge, a_page_brings_its_key_as_a_subprotocol) {
  server_options options;
  options.api_keys = {"secret"};
  open(options);
  const std::string offer = "Sec-WebSocket-Protocol: tandem, tandem.key.";
  const auto opened = ws_client(port(), offer + "c2VjcmV0\r\n").handshake;
  EXPECT_EQ(opened.status, 101);
  EXPECT_TRUE(opened.has("Sec-WebSocket-Protocol: tandem\r\n"));
  EXPECT_EQ(ws_client(port(), offer + "c2VjcmV\r\n").handshake.status, 401);
  EXPECT_EQ(ws_client(port(), offer + "\r\n").handshake.status, 401);
  raw_client plain(port());
  EXPECT_EQ(plain.request("GET", "/version", {}, offer + "c2VjcmV0\r\n").status, 401);
}

TEST_F(websocket_edge, only_an_offered_subprotocol_is_picked) {
  open();
  EXPECT_FALSE(ws_client(port()).handshake.has("Sec-WebSocket-Protocol"));
  EXPECT_FALSE(ws_client(port(), "Sec-WebSocket-Protocol: other\r\n").handshake.has("Sec-WebSocket-Protocol"));
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

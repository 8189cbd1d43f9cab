// Groups 12 and 13: permessage-deflate and its negotiation. The client's side is zlib itself.

#include <zlib.h>

#include "config/limits.hpp"
#include "tests/net/websocket/conformance.hpp"

namespace tandem::net::test {
namespace {

const std::string kOffer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
const std::string kTail("\x00\x00\xFF\xFF", 4);

std::string deflated(const std::string& text, int level = 6) {
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_SYNC_FLUSH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out.substr(0, out.size() - kTail.size());
}

std::string inflated(std::string bytes) {
  bytes += kTail;
  z_stream stream{};
  inflateInit2(&stream, -15);
  std::string out(bytes.size() * 100 + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_SYNC_FLUSH), Z_OK);
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  return out;
}

std::string compressed_frame(int opcode, const std::string& payload, bool final = true) {
  return ws_client::frame(opcode, payload, {final, true, opcode == 0 ? 0 : 4});
}

TEST_F(conformance, G12_compressed_messages_of_every_length_and_level_arrive) {
  ws_client client(port(), kOffer);
  std::size_t sent = 0;
  for (const std::size_t length : {0, 16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072}) {
    for (const int level : {0, 1, 9}) {
      std::string prompt;
      for (std::size_t i = 0; i < length; ++i) prompt += static_cast<char>('a' + i * i % 23);
      client.raw.send(compressed_frame(1, deflated(request(prompt), level)));
      EXPECT_EQ(arrived(++sent), prompt) << length << " " << level;
      client.until("usage");
    }
  }
}

TEST_F(conformance, G12_a_compressed_message_may_be_cut_anywhere_with_pings_between) {
  ws_client client(port(), kOffer);
  const std::string bytes = deflated(request("cut"));
  std::size_t sent = 0;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    client.raw.send(compressed_frame(1, bytes.substr(0, cut), false) + ws_client::frame(9, "p") +
                    compressed_frame(0, bytes.substr(cut)));
    EXPECT_EQ(arrived(++sent), "cut") << cut;
    EXPECT_EQ(client.next().opcode, 10);
    client.until("usage");
  }
}

TEST_F(conformance, G12_plain_and_compressed_messages_may_alternate) {
  ws_client client(port(), kOffer);
  for (std::size_t sent = 1; sent <= 6; ++sent) {
    client.raw.send(sent % 2 == 0 ? ws_client::frame(1, request("plain"))
                                  : compressed_frame(1, deflated(request("small"))));
    EXPECT_EQ(arrived(sent), sent % 2 == 0 ? "plain" : "small");
    client.until("usage");
  }
}

TEST_F(conformance, G12_a_message_may_end_with_a_final_block) {
  ws_client client(port(), kOffer);
  const std::string text = request("final");
  std::string block{"\x01", 1};  // stored, final
  block += {static_cast<char>(text.size()), '\0', static_cast<char>(~text.size()), '\xFF'};
  client.raw.send(compressed_frame(1, block + text + std::string(1, '\0')));
  EXPECT_EQ(arrived(1), "final");
}

TEST_F(conformance, G12_long_answers_are_compressed_and_short_ones_are_not) {
  ws_client client(port(), kOffer);
  runtime_->change([this] { runtime_->script = {{std::string(2000, 'z'), false}, {"end", true}}; });
  client.text(request("x"));
  const ws_frame large = client.next();
  EXPECT_TRUE(large.compressed);
  EXPECT_LT(large.payload.size(), 1000);
  EXPECT_NE(inflated(large.payload).find(std::string(2000, 'z')), std::string::npos);
  EXPECT_FALSE(client.next().compressed);
}

TEST_F(conformance, G12_without_the_extension_nothing_is_compressed_and_RSV1_is_an_error) {
  ws_client client(port());
  runtime_->change([this] { runtime_->script = {{std::string(2000, 'z'), false}, {"end", true}}; });
  client.text(request("x"));
  EXPECT_FALSE(client.next().compressed);
  EXPECT_EQ(close_after(compressed_frame(1, deflated("{}"))), 1002);
}

TEST_F(conformance, G12_broken_compressed_data) {
  EXPECT_EQ(close_after(compressed_frame(1, "\xFF\xFF\xFF\xFF"), kOffer), 1007);
  EXPECT_EQ(close_after(compressed_frame(1, deflated("\xFF\xFE")), kOffer), 1007);
  EXPECT_EQ(close_after(ws_client::frame(9, "x", {true, true, 4}), kOffer), 1002);
  EXPECT_EQ(close_after(compressed_frame(1, deflated("a"), false) + ws_client::frame(0, "", {true, true, 4}), kOffer),
            1002);
  EXPECT_EQ(close_after(compressed_frame(2, deflated("a")), kOffer), 1003);
}

TEST_F(conformance, G12_a_deflate_bomb_meets_1009) {
  const std::string bomb = deflated(std::string(limits::kMaxWebSocketMessageBytes + 1, ' '), 9);
  ASSERT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(close_after(compressed_frame(1, bomb), kOffer), 1009);
  std::string fragments = compressed_frame(1, bomb.substr(0, 1), false);
  for (std::size_t at = 1; at < bomb.size(); at += 1000) fragments += compressed_frame(0, bomb.substr(at, 1000), false);
  EXPECT_EQ(close_after(fragments, kOffer), 1009);
  probe();
}

TEST_F(conformance, G13_offers_are_taken_or_declined) {
  const std::string terms = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
  const struct {
    std::string offer;
    std::string answer;  ///< empty: declined
  } cases[] = {
      {"permessage-deflate", terms},
      {"permessage-deflate; client_no_context_takeover", terms},
      {"permessage-deflate; server_no_context_takeover", terms},
      {"permessage-deflate; client_max_window_bits", terms},
      {"permessage-deflate; client_max_window_bits=9", terms},
      {"permessage-deflate; server_max_window_bits=9", terms + "; server_max_window_bits=9"},
      {"permessage-deflate; server_max_window_bits=\"12\"", terms + "; server_max_window_bits=12"},
      {"permessage-deflate; server_max_window_bits=8", ""},
      {"permessage-deflate; server_max_window_bits=8, permessage-deflate", terms},
      {"x-webkit-deflate-frame, permessage-deflate; client_max_window_bits", terms},
      {"permessage-deflate; server_max_window_bits=16", ""},
      {"permessage-deflate; server_max_window_bits", ""},
      {"permessage-deflate; client_max_window_bits=7", ""},
      {"permessage-deflate; server_no_context_takeover=1", ""},
      {"permessage-deflate; server_no_context_takeover; server_no_context_takeover", ""},
      {"permessage-deflate; unknown", ""},
      {"permessage-bzip2", ""},
      {"", ""},
  };
  for (const auto& each : cases) {
    const ws_client client(port(), "Sec-WebSocket-Extensions: " + each.offer + "\r\n");
    ASSERT_EQ(client.handshake.status, 101) << each.offer;
    EXPECT_EQ(client.handshake.has("Sec-WebSocket-Extensions"), !each.answer.empty()) << each.offer;
    EXPECT_TRUE(each.answer.empty() || client.handshake.has("Sec-WebSocket-Extensions: " + each.answer + "\r\n"))
        << each.offer;
  }
}

TEST_F(conformance, G13_small_windows_are_kept_to) {
  runtime_->change([this] { runtime_->script = {{std::string(3000, 'q'), false}, {"", true}}; });
  for (int bits = 9; bits <= 15; ++bits) {
    ws_client client(port(), "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=" +
                                 std::to_string(bits) + "\r\n");
    client.text(request("x"));
    EXPECT_NE(inflated(client.next().payload).find(std::string(3000, 'q')), std::string::npos) << bits;
  }
}

}  // namespace
}  // namespace tandem::net::test

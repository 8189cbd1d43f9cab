// Group 5: messages in fragments.

#include "tests/net/websocket/conformance.hpp"

namespace tandem::net::test {
namespace {

const std::string kText = R"({"id":1,"prompt":"fragmented"})";

TEST_F(conformance, G5_a_message_may_be_cut_anywhere) {
  ws_client client(port());
  std::size_t sent = 0;
  for (std::size_t cut = 0; cut <= kText.size(); ++cut) {
    client.raw.send(ws_client::open_frame(1, kText.substr(0, cut)) + ws_client::frame(0, kText.substr(cut)));
    EXPECT_EQ(arrived(++sent), "fragmented") << cut;
    client.until("usage");
  }
}

TEST_F(conformance, G5_fragments_may_be_empty) {
  ws_client client(port());
  client.raw.send(ws_client::open_frame(1, "") + ws_client::open_frame(0, kText) + ws_client::open_frame(0, "") +
                  ws_client::frame(0, ""));
  EXPECT_EQ(arrived(1), "fragmented");
}

TEST_F(conformance, G5_pings_between_fragments_are_answered_at_once) {
  ws_client client(port());
  for (std::size_t i = 0; i < kText.size(); ++i) {
    client.raw.send(ws_client::frame(i == 0 ? 1 : 0, kText.substr(i, 1), {i + 1 == kText.size()}));
    if (i + 1 == kText.size()) break;
    client.raw.send(ws_client::frame(9, "p"));
    const ws_frame pong = client.next();
    EXPECT_EQ(pong.opcode, 10);
    EXPECT_EQ(pong.payload, "p");
  }
  EXPECT_EQ(arrived(1), "fragmented");
}

TEST_F(conformance, G5_broken_sequences_close_with_1002) {
  const auto open = ws_client::open_frame;
  const std::string cases[] = {
      ws_client::frame(0, "alone"),
      open(0, "alone"),
      open(1, "a") + ws_client::frame(1, "b"),
      open(1, "a") + open(1, "b"),
      open(1, "a") + ws_client::frame(2, "b"),
      open(1, "a") + ws_client::frame(0, "b") + ws_client::frame(0, "c"),
      open(9, "ping"),
      open(10, "pong"),
      open(8, ""),
      open(1, "a") + ws_client::frame(0, "b", {true, true, 4}),
  };
  for (const std::string& bytes : cases) EXPECT_EQ(close_after(bytes), 1002) << testing::PrintToString(bytes);
}

TEST_F(conformance, G5_a_binary_message_in_fragments_is_refused_at_its_end) {
  EXPECT_EQ(close_after(ws_client::open_frame(2, "a") + ws_client::frame(9, "p") + ws_client::frame(0, "b")), 1003);
}

}  // namespace
}  // namespace tandem::net::test

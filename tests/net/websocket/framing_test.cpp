// Group 1: lengths at the edges of their encodings, sent at once and in pieces. Group 9: large messages.

#include "config/limits.hpp"
#include "tests/net/websocket/conformance.hpp"

namespace tandem::net::test {
namespace {

TEST_F(conformance, G1_every_length_of_text_arrives) {
  ws_client client(port());
  std::size_t sent = 0;
  for (const std::size_t length : {0, 1, 90, 124, 125, 126, 127, 128, 65500, 65534, 65535, 65536, 65537}) {
    std::string prompt(length, '*');
    client.text(request(prompt));
    EXPECT_EQ(arrived(++sent), prompt) << length;
    client.until("usage");
  }
}

TEST_F(conformance, G1_payloads_of_exactly_the_edge_lengths_are_read) {
  ws_client client(port());
  const std::size_t around = request("").size();
  std::size_t sent = 0;
  for (const std::size_t length : {125, 126, 127, 65535, 65536}) {
    const std::string prompt(length - around, '*');
    ASSERT_EQ(request(prompt).size(), length);
    client.text(request(prompt));
    EXPECT_EQ(arrived(++sent), prompt) << length;
    client.until("usage");
  }
}

TEST_F(conformance, G1_a_frame_may_arrive_in_any_pieces) {
  const std::string prompt(70'000, 'x');
  const std::string bytes = ws_client::frame(1, request(prompt));
  std::size_t sent = 0;
  for (const std::size_t piece : {1, 7, 997, 4096}) {
    ws_client client(port());
    const std::size_t whole = piece == 1 ? 300 : bytes.size();  // byte by byte is enough for the header
    for (std::size_t at = 0; at < whole; at += piece) client.raw.send(bytes.substr(at, piece));
    client.raw.send(bytes.substr(std::min(bytes.size(), (whole + piece - 1) / piece * piece)));
    EXPECT_EQ(arrived(++sent), prompt) << piece;
  }
}

TEST_F(conformance, G1_every_mask_is_undone_also_the_one_of_zeros) {
  ws_client client(port());
  std::size_t sent = 0;
  for (const std::string& mask :
       {std::string(4, '\0'), std::string("\xFF\xFF\xFF\xFF"), std::string("\x01\x00\x80\x7F", 4)}) {
    client.raw.send(ws_client::frame(1, request("masked"), {true, true, 0, mask}));
    EXPECT_EQ(arrived(++sent), "masked");
    client.until("usage");
  }
}

TEST_F(conformance, G1_a_binary_message_closes_with_1003) {
  EXPECT_EQ(close_after(ws_client::frame(2, std::string("\x00\xFF", 2))), 1003);
  EXPECT_EQ(close_after(ws_client::frame(2, "")), 1003);
}

TEST_F(conformance, G1_a_length_must_be_written_in_its_shortest_form) {
  EXPECT_EQ(close_after(std::string("\x81\xFE\x00\x05", 4) + "\x37\xFA\x21\x3D" + "hello"), 1002);
  EXPECT_EQ(close_after(std::string("\x81\xFF\x00\x00\x00\x00\x00\x00\xFF\xFF\0\0\0\0", 14)), 1002);
  EXPECT_EQ(close_after(std::string("\x81\xFF\x80\x00\x00\x00\x00\x00\x00\x00\0\0\0\0", 14)), 1002);
}

TEST_F(conformance, G9_messages_up_to_the_limit_arrive_and_larger_ones_close_with_1009) {
  ws_client client(port());
  const std::size_t limit = limits::kMaxWebSocketMessageBytes;
  const std::size_t around = request("").size();
  std::size_t sent = 0;
  for (const std::size_t length : {std::size_t{1} << 20, limit - 1, limit}) {
    client.text(request(std::string(length - around, 'x')));
    EXPECT_EQ(arrived(++sent).size(), length - around);
    client.until("usage");
  }
  EXPECT_EQ(close_after(ws_client::frame(1, std::string(limit + 1, ' '))), 1009);
  EXPECT_EQ(close_after(ws_client::open_frame(1, std::string(limit, ' ')) + ws_client::frame(0, " ")), 1009);
}

TEST_F(conformance, G9_a_header_that_announces_much_costs_nothing) {
  EXPECT_EQ(close_after(std::string("\x81\xFF\x3F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0", 14)), 1009);
  probe();
}

}  // namespace
}  // namespace tandem::net::test

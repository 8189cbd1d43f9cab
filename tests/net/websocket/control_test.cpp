// Groups 2 to 4: pings and pongs, reserved bits, reserved opcodes.

#include "tests/net/websocket/conformance.hpp"

namespace tandem::net::test {
namespace {

TEST_F(conformance, G2_a_ping_is_answered_with_its_payload) {
  ws_client client(port());
  for (const std::string& payload :
       {std::string(), std::string("Hello"), std::string("\x00\xFF\xFE\xFD\x00", 5), std::string(125, '*')}) {
    client.raw.send(ws_client::frame(9, payload));
    const ws_frame pong = client.next();
    EXPECT_EQ(pong.opcode, 10);
    EXPECT_EQ(pong.payload, payload);
  }
}

TEST_F(conformance, G2_a_ping_in_single_bytes_is_answered) {
  ws_client client(port());
  for (const char byte : ws_client::frame(9, std::string(125, '*'))) client.raw.send(std::string(1, byte));
  EXPECT_EQ(client.next().payload, std::string(125, '*'));
}

TEST_F(conformance, G2_ten_pings_get_ten_pongs_in_order) {
  ws_client client(port());
  std::string all;
  for (int i = 0; i < 10; ++i) all += ws_client::frame(9, "p" + std::to_string(i));
  client.raw.send(all);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.next().payload, "p" + std::to_string(i));
}

TEST_F(conformance, G2_a_pong_that_nobody_asked_for_is_ignored) {
  ws_client client(port());
  client.raw.send(ws_client::frame(10, "") + ws_client::frame(10, "unasked") + ws_client::frame(9, "asked"));
  EXPECT_EQ(client.next().payload, "asked");
}

TEST_F(conformance, G2_a_control_frame_of_more_than_125_bytes_closes_with_1002) {
  for (const int opcode : {8, 9, 10}) EXPECT_EQ(close_after(ws_client::frame(opcode, std::string(126, '*'))), 1002);
}

TEST_F(conformance, G3_reserved_bits_close_with_1002_on_every_kind_of_frame) {
  for (int reserved = 1; reserved < 8; ++reserved) {
    for (const int opcode : {1, 2, 8, 9, 10}) {
      EXPECT_EQ(close_after(ws_client::frame(opcode, "", {true, true, reserved})), 1002) << reserved << " " << opcode;
    }
  }
}

TEST_F(conformance, G3_what_came_before_a_broken_frame_was_answered) {
  ws_client client(port());
  client.raw.send(ws_client::frame(9, "first") + ws_client::frame(1, "x", {true, true, 2}) +
                  ws_client::frame(9, "last"));
  EXPECT_EQ(client.next().payload, "first");
  EXPECT_EQ(client.next().close_code(), 1002);
  EXPECT_TRUE(client.raw.at_end());
}

TEST_F(conformance, G4_reserved_opcodes_close_with_1002) {
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    EXPECT_EQ(close_after(ws_client::frame(opcode, "")), 1002) << opcode;
    EXPECT_EQ(close_after(ws_client::frame(opcode, "payload")), 1002) << opcode;
  }
}

TEST_F(conformance, G4_an_unmasked_frame_closes_with_1002) {
  for (const int opcode : {1, 8, 9})
    EXPECT_EQ(close_after(ws_client::frame(opcode, "", {true, false})), 1002) << opcode;
}

}  // namespace
}  // namespace tandem::net::test

// Group 6: UTF-8 in text messages, whole and cut.

#include "tests/net/websocket/conformance.hpp"

namespace tandem::net::test {
namespace {

// The edges of each row of table 3-7, and noncharacters, which are well-formed.
const std::string kRight[] = {"\x7F",
                              "\xC2\x80",
                              "\xDF\xBF",
                              "\xE0\xA0\x80",
                              "\xED\x9F\xBF",
                              "\xEE\x80\x80",
                              "\xEF\xBF\xBF",
                              "\xEF\xBF\xBE",
                              "\xF0\x90\x80\x80",
                              "\xF4\x8F\xBF\xBF",
                              "\xF0\x9F\x98\x80",
                              "\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5"};
const std::string kWrong[] = {"\x80",
                              "\xBF",
                              "\xC0\x80",
                              "\xC1\xBF",
                              "\xC2",
                              "\xE0\x9F\xBF",
                              "\xE0\x80\x80",
                              "\xED\xA0\x80",
                              "\xED\xBF\xBF",
                              "\xE1\x80",
                              "\xF0\x8F\xBF\xBF",
                              "\xF0\x80\x80\x80",
                              "\xF4\x90\x80\x80",
                              "\xF5\x80\x80\x80",
                              "\xF8\x88\x80\x80\x80",
                              "\xFC\x84\x80\x80\x80\x80",
                              "\xFE",
                              "\xFF",
                              "\xC3\x28",
                              "\xE2\x28\xA1",
                              "\xF0\x28\x8C\xBC",
                              "\xED\xA1\x8C\xED\xBE\xB4"};

TEST_F(conformance, G6_every_kind_of_character_arrives_whole_and_in_single_bytes) {
  ws_client client(port());
  std::size_t sent = 0;
  for (const std::string& text : kRight) {
    const std::string message = request(text);
    client.text(message);
    EXPECT_EQ(arrived(++sent), text);
    client.until("usage");
    std::string fragments;
    for (std::size_t i = 0; i < message.size(); ++i) {
      fragments += ws_client::frame(i == 0 ? 1 : 0, message.substr(i, 1), {i + 1 == message.size()});
    }
    client.raw.send(fragments);
    EXPECT_EQ(arrived(++sent), text);
    client.until("usage");
  }
}

TEST_F(conformance, G6_ill_formed_text_closes_with_1007) {
  for (const std::string& text : kWrong) {
    EXPECT_EQ(close_after(ws_client::frame(1, "a" + text + "b")), 1007) << testing::PrintToString(text);
    EXPECT_EQ(close_after(ws_client::frame(1, "a" + text)), 1007) << testing::PrintToString(text);
  }
}

TEST_F(conformance, G6_a_wrong_byte_is_refused_before_the_message_is_complete) {
  for (const std::string& text :
       {std::string("\xCE\xBA\xE1\xBD\xB9\xF4\x90"), std::string("\xFF"), std::string("\xED\xA0")}) {
    EXPECT_EQ(close_after(ws_client::open_frame(1, text)), 1007) << testing::PrintToString(text);
  }
}

TEST_F(conformance, G6_a_message_that_ends_inside_a_character_closes_with_1007) {
  EXPECT_EQ(close_after(ws_client::open_frame(1, "\xE2\x82") + ws_client::frame(0, "")), 1007);
}

}  // namespace
}  // namespace tandem::net::test

#pragma once
/// What the groups of conformance tests share. They follow the groups of Autobahn's suite; instead of an echo, what
/// arrived is the prompt of a request at /ws.

#include <initializer_list>
#include <string>
#include <variant>

#include "tests/net/edge.hpp"
#include "tests/net/ws_client.hpp"

namespace tandem::net::test {

class conformance : public edge {
 protected:
  void SetUp() override { open(); }

  /// A request whose prompt is `text`, which must need no escapes in JSON.
  static std::string request(const std::string& text) { return R"({"id":1,"prompt":")" + text + R"("})"; }

  /// The prompt of the last of `count` requests so far.
  std::string arrived(std::size_t count) {
    if (!runtime_->wait_for_submitted(count)) return "nothing";
    return std::get<prompt_text>(runtime_->submitted()[count - 1].prompt).text;
  }

  /// How the server closes after these bytes; 0 when it does not.
  int close_after(const std::string& bytes, const std::string& fields = {}) {
    ws_client client(port(), fields);
    EXPECT_EQ(client.handshake.status, 101);
    client.raw.send(bytes);
    ws_frame got = client.next();
    while (got.opcode == 1 || got.opcode == 10) got = client.next();
    const int code = got.close_code();
    client.raw.send(ws_client::frame(8, std::string("\x03\xE8", 2)));
    EXPECT_TRUE(client.raw.at_end());
    return code;
  }
};

}  // namespace tandem::net::test

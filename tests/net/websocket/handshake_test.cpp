// The opening handshake: what is refused, subprotocols, keys that a browser can send.

#include "tests/net/websocket/conformance.hpp"

namespace tandem::net::test {
namespace {

using websocket_handshake = edge;

raw_response upgrade(std::uint16_t port, const std::string& fields, const std::string& version = "HTTP/1.1") {
  raw_client client(port);
  client.send("GET /ws " + version + "\r\n" + fields + "\r\n");
  return client.response();
}

TEST_F(websocket_handshake, wrong_ones_are_refused_and_the_connection_serves_on) {
  open();
  const std::string upgrades = "Upgrade: websocket\r\n";
  const std::string connection = "Connection: keep-alive, Upgrade\r\n";
  const std::string host = "Host: x\r\n";
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const std::string version = "Sec-WebSocket-Version: 13\r\n";
  const struct {
    std::string fields;
    int status;
  } cases[] = {
      {host + upgrades + connection + key + version, 101},
      {host + "Upgrade: WebSocket\r\nConnection: upgrade\r\n" + key + version, 101},
      {host + connection + key + version, 426},
      {host + upgrades + key + version, 400},
      {host + upgrades + connection + version, 400},
      {host + upgrades + connection + "Sec-WebSocket-Key: c2hvcnQ=\r\n" + version, 400},
      {host + upgrades + connection + "Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!==\r\n" + version, 400},
      {host + upgrades + connection + key, 426},
      {host + upgrades + connection + key + "Sec-WebSocket-Version: 8\r\n", 426},
      {upgrades + connection + key + version, 400},
  };
  for (const auto& each : cases) EXPECT_EQ(upgrade(port(), each.fields).status, each.status) << each.fields;
  EXPECT_TRUE(upgrade(port(), host + upgrades + connection + key).has("Sec-WebSocket-Version: 13"));
  EXPECT_EQ(upgrade(port(), host + upgrades + connection + key + version, "HTTP/1.0").status, 400);
  raw_client client(port());
  client.send("GET /ws HTTP/1.1\r\n" + host + upgrades + connection + key + "\r\n");
  EXPECT_EQ(client.response().status, 426);
  EXPECT_EQ(client.request("GET", "/health").status, 200);
}

TEST_F(websocket_handshake, a_subprotocol_is_answered_only_where_it_is_known_and_no_key) {
  open();
  const struct {
    std::string offer;
    std::string answer;
  } cases[] = {
      {"tandem", "tandem"},
      {"chat, tandem", "tandem"},
      {"realtime, openai-insecure-api-key.k, openai-beta.realtime-v1", "realtime"},
      {"tandem, api-key.a2V5", "tandem"},
      {"api-key.a2V5", ""},
      {"chat", ""},
  };
  for (const auto& each : cases) {
    const ws_client client(port(), "Sec-WebSocket-Protocol: " + each.offer + "\r\n");
    EXPECT_EQ(client.handshake.status, 101) << each.offer;
    EXPECT_EQ(client.handshake.has("Sec-WebSocket-Protocol"), !each.answer.empty()) << each.offer;
    EXPECT_TRUE(each.answer.empty() || client.handshake.has("Sec-WebSocket-Protocol: " + each.answer + "\r\n"));
  }
}

TEST_F(websocket_handshake, a_browser_sends_its_key_as_a_subprotocol) {
  server_options options;
  options.api_keys = {"first", "k?y>"};
  open(options);
  const struct {
    std::string fields;
    int status;
  } cases[] = {
      {"", 401},
      {"Authorization: Bearer first\r\n", 101},
      {"Authorization: Bearer wrong\r\nSec-WebSocket-Protocol: tandem, api-key.Zmlyc3Q\r\n", 401},
      {"Sec-WebSocket-Protocol: tandem, api-key.Zmlyc3Q\r\n", 101},
      {"Sec-WebSocket-Protocol: tandem, api-key.Zmlyc3Q=\r\n", 101},
      {"Sec-WebSocket-Protocol: tandem, api-key.az95Pg\r\n", 101},
      {"Sec-WebSocket-Protocol: tandem, api-key.d3Jvbmc\r\n", 401},
      {"Sec-WebSocket-Protocol: tandem, api-key.!\r\n", 401},
      {"Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.first\r\n", 101},
      {"Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.wrong\r\n", 401},
      {"Sec-WebSocket-Protocol: tandem\r\n", 401},
  };
  for (const auto& each : cases) EXPECT_EQ(ws_client(port(), each.fields).handshake.status, each.status) << each.fields;
  raw_client plain(port());  // not for ordinary requests
  EXPECT_EQ(plain.request("GET", "/v1/models", {}, "Sec-WebSocket-Protocol: tandem, api-key.Zmlyc3Q\r\n").status, 401);
}

}  // namespace
}  // namespace tandem::net::test

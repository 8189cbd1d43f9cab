// Who may ask: API keys, requests at once per key, pages of other origins.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "net/api_keys.hpp"
#include "net/cross_origin.hpp"
#include "tests/net/edge.hpp"

namespace tandem::net::test {
namespace {

http_request with_authorization(const std::string& value) {
  http_request head;
  if (!value.empty()) head.headers = {{"authorization", value}};
  return head;
}

TEST(api_keys, the_key_that_fits_is_found_among_several) {
  const api_keys keys({"first", "second", std::string("zero\0byte", 9)}, 0);
  EXPECT_EQ(keys.find(with_authorization("Bearer first")), 0u);
  EXPECT_EQ(keys.find(with_authorization("bearer second")), 1u);
  for (const std::string value : {"", "Bearer", "Bearer ", "Bearer firs", "Bearer firstx", "Bearer  first", "first",
                                  "Basic first", "Bearer FIRST", "Bearer zero"})
    EXPECT_FALSE(keys.find(with_authorization(value))) << value;
  EXPECT_TRUE(api_keys({}, 0).open());
}

TEST(api_keys, a_key_has_no_more_requests_at_once_than_it_may) {
  api_keys keys({"a", "b"}, 2);
  auto first = keys.lease(0);
  auto second = keys.lease(0);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(keys.lease(0));
  EXPECT_TRUE(keys.lease(1));  // each key for itself
  key_lease moved = std::move(*first);
  first.reset();
  EXPECT_FALSE(keys.lease(0));  // still running, elsewhere
  moved = {};
  EXPECT_TRUE(keys.lease(0));
  EXPECT_TRUE(keys.lease(std::nullopt));
}

http_request asking(const std::string& origin, const std::string& method = "POST", const std::string& fields = {}) {
  http_request head;
  head.method = "OPTIONS";
  head.headers = {{"Origin", origin}, {"Access-Control-Request-Method", method}};
  if (!fields.empty()) head.headers.emplace_back("Access-Control-Request-Headers", fields);
  return head;
}

TEST(cross_origin, a_preflight_is_answered_by_the_rules) {
  const cross_origin_rules rules{{"https://a.example"}, {"POST"}, {"content-type", "authorization"}, true};
  EXPECT_TRUE(is_preflight(asking("https://a.example")));
  EXPECT_EQ(answer_preflight(rules, asking("https://a.example", "POST", "Content-Type,authorization")).status, 204u);
  EXPECT_EQ(answer_preflight(rules, asking("https://b.example")).status, 403u);
  EXPECT_EQ(answer_preflight(rules, asking("https://a.example.evil")).status, 403u);
  EXPECT_EQ(answer_preflight(rules, asking("https://a.example", "DELETE")).status, 403u);
  EXPECT_EQ(answer_preflight(rules, asking("https://a.example", "POST", "content-type, x-other")).status, 403u);
  const cross_origin_rules any{{"*"}, {"*"}, {"*"}, false};
  EXPECT_EQ(answer_preflight(any, asking("null", "PATCH", "x-any")).status, 204u);
}

TEST(cross_origin, answers_carry_fields_for_allowed_pages_only) {
  const cross_origin_rules rules{{"https://a.example"}, {"*"}, {"*"}, false};
  EXPECT_TRUE(cross_origin_fields(rules, "").empty());
  EXPECT_TRUE(cross_origin_fields(rules, "https://b.example").empty());
  EXPECT_EQ(cross_origin_fields(rules, "https://a.example").front().second, "https://a.example");
  EXPECT_TRUE(cross_origin_fields({}, "https://a.example").empty());
}

server_options with_origins(std::vector<std::string> origins) {
  server_options options;
  options.cross_origin = {std::move(origins), {"*"}, {"*"}, false};
  return options;
}

const std::string kPreflight =
    "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: "
    "authorization\r\n";

class access : public edge {};

TEST_F(access, pages_of_other_origins_get_nothing_by_default) {
  open();
  raw_client client(port());
  const auto preflight = client.request("OPTIONS", "/v1/chat/completions", {}, kPreflight);
  EXPECT_EQ(preflight.status, 405);
  EXPECT_FALSE(preflight.has("access-control"));
  EXPECT_FALSE(client.request("GET", "/v1/models", {}, "Origin: https://a.example\r\n").has("access-control"));
}

TEST_F(access, an_allowed_page_may_ask_and_read_answers_streams_and_refusals) {
  auto options = with_origins({"https://a.example"});
  options.api_keys = {"secret"};
  open(std::move(options));
  raw_client client(port());
  const auto preflight = client.request("OPTIONS", "/v1/completions", {}, kPreflight);  // browsers send no key with it
  EXPECT_EQ(preflight.status, 204);
  EXPECT_TRUE(preflight.has("Access-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_TRUE(preflight.has("Access-Control-Allow-Headers: authorization\r\n"));
  EXPECT_FALSE(preflight.has("Content-Length"));
  const std::string allowed = "Access-Control-Allow-Origin: https://a.example\r\n";
  const std::string origin = "Origin: https://a.example\r\n";
  const auto refused = client.request("POST", "/v1/completions", kCompletion, origin);
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.has(allowed));
  const std::string key = origin + "Authorization: Bearer secret\r\n";
  EXPECT_TRUE(client.request("POST", "/v1/completions", kCompletion, key).has(allowed));
  EXPECT_TRUE(client.request("POST", "/v1/completions", kStream, key).has(allowed));
  const std::string other = "Origin: https://b.example\r\nAuthorization: Bearer secret\r\n";
  EXPECT_FALSE(client.request("POST", "/v1/completions", kCompletion, other).has("access-control"));
}

TEST_F(access, a_websocket_follows_the_rules_of_origins) {
  open(with_origins({"https://a.example"}));
  const auto upgrade = [&](const std::string& origin) {
    raw_client client(port());
    return client
        .request("GET", "/ws", {},
                 "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: " +
                     origin + "\r\n")
        .status;
  };
  EXPECT_EQ(upgrade("https://a.example"), 101);
  EXPECT_EQ(upgrade("http://test"), 101);  // its own
  EXPECT_EQ(upgrade("https://b.example"), 403);
}

http_request of_page(const std::string& origin, const std::string& host) {
  http_request head;
  head.headers = {{"Host", host}};
  if (!origin.empty()) head.headers.emplace_back("Origin", origin);
  return head;
}

TEST(cross_origin, a_page_by_a_name_that_a_stranger_can_own_is_rebound) {
  const cross_origin_rules rules;
  for (const std::string host : {"evil.example:8000", "evil.example", "EVIL.example.:8000", "local.evil.example",
                                 "127.0.0.1.evil.example", "1.2.3.4x.example", "evil-local.example:80"})
    EXPECT_TRUE(is_rebound(rules, of_page("http://" + host, host))) << host;
  for (const std::string host :
       {"localhost:8000", "LOCALHOST", "127.0.0.1:8000", "10.1.2.3", "[::1]:8000", "[fe80::1]", "gpu-box:8000",
        "gpu-box.local:8000", "chat.localhost", "llm.home.arpa", "llm.corp.internal:9000", "llm.internal."})
    EXPECT_FALSE(is_rebound(rules, of_page("http://" + host, host))) << host;
}

TEST(cross_origin, what_is_no_rebound_page_passes) {
  const cross_origin_rules none;
  EXPECT_FALSE(is_rebound(none, of_page("", "evil.example:8000")));                  // curl, by any name
  EXPECT_FALSE(is_rebound(none, of_page("https://llm.example", "llm.example")));     // a proxy proved the name
  EXPECT_FALSE(is_rebound(none, of_page("http://chat.example", "127.0.0.1:8000")));  // CORS is asked about it
  EXPECT_FALSE(is_rebound(none, of_page("null", "evil.example")));
  cross_origin_rules some;
  some.hosts = {"llm.example", "*.lab.example"};
  EXPECT_FALSE(is_rebound(some, of_page("http://LLM.example:8000", "llm.example:8000")));
  EXPECT_FALSE(is_rebound(some, of_page("http://a.b.lab.example", "a.b.lab.example")));
  EXPECT_TRUE(is_rebound(some, of_page("http://x.llm.example", "x.llm.example")));
  EXPECT_TRUE(is_rebound(some, of_page("http://lab.example", "lab.example")));
  EXPECT_TRUE(is_rebound(some, of_page("http://evillab.example", "evillab.example")));
  some = {};
  some.origins = {"http://evil.example"};
  EXPECT_FALSE(is_rebound(some, of_page("http://evil.example", "evil.example")));
  some = {};
  some.hosts = {"*"};
  EXPECT_FALSE(is_rebound(some, of_page("http://evil.example", "evil.example")));
}

// raw_client says "Host: test".
std::string by_name(const std::string& method, const std::string& path, const std::string& fields) {
  std::string text = raw_client::message(method, path, method == "POST" ? kCompletion : std::string(), fields);
  const std::size_t host = text.find("Host: test\r\n");
  return text.erase(host, std::string_view("Host: test\r\n").size());
}

TEST_F(access, a_page_that_made_itself_the_servers_own_is_refused_and_others_are_not) {
  open();
  const std::string evil = "Host: evil.example:8000\r\n";
  const std::string page = evil + "Origin: http://evil.example:8000\r\n";
  const std::string upgrade =
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const auto status = [&](const std::string& text) {
    raw_client client(port());
    client.send(text);
    return client.response().status;
  };
  EXPECT_EQ(status(by_name("POST", "/v1/completions", page)), 403);
  EXPECT_EQ(status(by_name("GET", "/v1/models", page)), 403);
  EXPECT_EQ(status(by_name("GET", "/ws", page + upgrade)), 403);
  EXPECT_EQ(status(by_name("GET", "/live", page)), 200);
  EXPECT_EQ(status(by_name("POST", "/v1/completions", evil)), 200);  // no browser
  EXPECT_EQ(status(by_name("GET", "/ws", evil + upgrade)), 101);
  const std::string proxied = "Host: llm.example\r\nOrigin: https://llm.example\r\n";
  EXPECT_EQ(status(by_name("POST", "/v1/completions", proxied)), 200);
  EXPECT_EQ(status(by_name("GET", "/ws", proxied + upgrade)), 101);
}

TEST_F(access, a_listed_name_or_a_key_lets_a_page_in) {
  server_options options;
  options.cross_origin.hosts = {"llm.example"};
  open(std::move(options));
  raw_client client(port());
  client.send(by_name("POST", "/v1/completions", "Host: llm.example:80\r\nOrigin: http://llm.example:80\r\n"));
  EXPECT_EQ(client.response().status, 200);
  server_options keyed;
  keyed.api_keys = {"secret"};
  open(std::move(keyed));
  raw_client with_key(port());
  with_key.send(by_name("POST", "/v1/completions",
                        "Host: a.example\r\nOrigin: http://a.example\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_EQ(with_key.response().status, 200);
}

TEST_F(access, a_page_must_name_the_type_of_its_body) {
  open();
  const auto untyped = [&](const std::string& fields) {
    raw_client client(port());
    std::string text = raw_client::message("POST", "/v1/completions", kCompletion, fields);
    const std::string type = "Content-Type: application/json\r\n";
    if (const std::size_t at = text.find(type); at != std::string::npos) text.erase(at, type.size());
    client.send(text);
    return client.response().status;
  };
  EXPECT_EQ(untyped(""), 200);
  EXPECT_EQ(untyped("Origin: https://evil.example\r\n"), 415);
}

TEST_F(access, a_key_with_too_many_requests_gets_429_until_one_ends) {
  server_options options;
  options.api_keys = {"one", "two"};
  options.max_requests_per_key = 1;
  runtime_->hold = true;
  open(std::move(options));
  const std::string one = "Authorization: Bearer one\r\n";
  raw_client first(port());
  first.send(raw_client::message("POST", "/v1/completions", kCompletion, one));
  ASSERT_TRUE(runtime_->wait_for_submitted(1));
  raw_client second(port());
  const auto refused = second.request("POST", "/v1/completions", kCompletion, one);
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.has("Retry-After: "));
  EXPECT_EQ(second.request("GET", "/v1/models", {}, one).status, 200);
  EXPECT_EQ(second.request("POST", "/v1/cancel/cmpl-none", {}, one).status, 404);
  raw_client third(port());
  third.send(raw_client::message("POST", "/v1/completions", kCompletion, "Authorization: Bearer two\r\n"));
  ASSERT_TRUE(runtime_->wait_for_submitted(2));
  runtime_->release();
  EXPECT_EQ(first.response().status, 200);
  EXPECT_EQ(third.response().status, 200);
  runtime_->change([&] { runtime_->hold = false; });
  EXPECT_EQ(second.request("POST", "/v1/completions", kCompletion, one).status, 200);
}

TEST_F(access, a_client_that_leaves_gives_its_request_back) {
  server_options options;
  options.api_keys = {"one"};
  options.max_requests_per_key = 1;
  runtime_->hold = true;
  open(std::move(options));
  const std::string one = "Authorization: Bearer one\r\n";
  {
    raw_client gone(port());
    gone.send(raw_client::message("POST", "/v1/completions", kCompletion, one));
    ASSERT_TRUE(runtime_->wait_for_submitted(1));
  }
  ASSERT_TRUE(runtime_->wait_for_cancelled(1));
  runtime_->change([&] { runtime_->hold = false; });
  raw_client next(port());
  EXPECT_EQ(next.request("POST", "/v1/completions", kCompletion, one).status, 200);
}

}  // namespace
}  // namespace tandem::net::test

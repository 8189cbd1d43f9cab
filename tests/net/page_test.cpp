// What a browser gets: the page's files, their headers, and the live view behind them.

#include <string>

#include "net/page_files.hpp"
#include "tests/net/edge.hpp"

namespace tandem::net::test {
namespace {

using page_edge = edge;

std::string etag_of(const raw_response& response) {
  const std::size_t at = response.head.find("ETag: ");
  if (at == std::string::npos) return {};
  return response.head.substr(at + 6, response.head.find("\r\n", at) - at - 6);
}

TEST_F(page_edge, every_file_has_its_type_and_is_kept_from_other_pages_and_scripts) {
  open();
  raw_client client(port());
  ASSERT_FALSE(page_files().empty());
  for (const page_file& file : page_files()) {
    const auto answer = client.request("GET", "/page/" + std::string(file.name));
    EXPECT_EQ(answer.status, 200) << file.name;
    EXPECT_EQ(answer.body, file.bytes);
    EXPECT_TRUE(answer.has("Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';"));
    EXPECT_TRUE(answer.has("frame-ancestors 'none'"));
    EXPECT_TRUE(answer.has("X-Content-Type-Options: nosniff"));
  }
  EXPECT_TRUE(client.request("GET", "/").has("Content-Type: text/html; charset=utf-8"));
  EXPECT_TRUE(client.request("GET", "/docs").has("Content-Type: text/html; charset=utf-8"));
  EXPECT_TRUE(client.request("GET", "/page/main.js").has("Content-Type: text/javascript; charset=utf-8"));
  EXPECT_TRUE(client.request("GET", "/page/page.css").has("Content-Type: text/css; charset=utf-8"));
  EXPECT_TRUE(client.request("GET", "/page/icon.svg").has("Content-Type: image/svg+xml"));
  EXPECT_TRUE(client.request("GET", "/openapi.json").has("Content-Type: application/json"));
}

TEST_F(page_edge, the_description_names_the_version) {
  open();
  raw_client client(port());
  const std::string version = client.request("GET", "/version").body;  // {"version":"…"}
  const std::string number = version.substr(version.find(':') + 2);
  EXPECT_NE(client.request("GET", "/openapi.json").body.find(number.substr(0, number.find('"'))), std::string::npos);
}

TEST_F(page_edge, a_file_that_the_browser_has_is_not_sent_again) {
  open();
  raw_client client(port());
  const auto first = client.request("GET", "/");
  const std::string tag = etag_of(first);
  ASSERT_GT(tag.size(), 10U);
  EXPECT_TRUE(first.has("Cache-Control: no-cache"));
  for (const std::string& known : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
    client.send(raw_client::message("GET", "/", {}, "If-None-Match: " + known + "\r\n"));
    const auto again = client.response(true);  // and nothing follows: the next answer is in its place
    EXPECT_EQ(again.status, 304) << known;
    EXPECT_EQ(etag_of(again), tag);
  }
  EXPECT_EQ(client.request("GET", "/", {}, "If-None-Match: \"other\"\r\n").status, 200);
}

TEST_F(page_edge, head_tells_the_length_and_sends_nothing) {
  open();
  raw_client client(port());
  const auto whole = client.request("GET", "/");
  const auto head = client.request("HEAD", "/");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: " + std::to_string(whole.body.size())));
  EXPECT_EQ(client.request("GET", "/live").status, 200);
}

TEST_F(page_edge, other_names_are_404_and_other_methods_405) {
  open();
  raw_client client(port());
  for (const std::string path :
       {"/page/", "/page/nothing.js", "/page/../page.css", "/page/%2e%2e", "/docs/", "/index.html"})
    EXPECT_EQ(client.request("GET", path).status, 404) << path;
  for (const std::string path : {"/", "/docs", "/page/main.js", "/openapi.json", "/v1/batch"})
    EXPECT_EQ(client.request("POST", path, "{}").status, 405) << path;
}

TEST_F(page_edge, the_page_needs_no_key_and_no_model_what_it_shows_does) {
  server_options options;
  options.api_keys = {"secret"};
  open(options, false);
  raw_client client(port());
  for (const std::string path : {"/", "/docs", "/page/main.js", "/openapi.json"})
    EXPECT_EQ(client.request("GET", path).status, 200) << path;
  EXPECT_EQ(client.request("GET", "/v1/batch").status, 401);
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(client.request("GET", "/v1/batch", {}, key).status, 503);
  server_->serve(runtime_);
  EXPECT_EQ(client.request("GET", "/v1/batch", {}, key).status, 200);
}

TEST_F(page_edge, the_batch_is_told_in_numbers) {
  runtime_->state.running = 3;
  runtime_->state.waiting = 1;
  runtime_->state.blocks_used = 7;
  runtime_->state.blocks_total = 40;
  runtime_->seen = {
      batch_view::step{9, 2, 5, 0.004, 0.003, 1, 2, {{draft_method::ngram, 4, 4, 3}, {draft_method::ngram, 2, 0, 0}}},
      100, 200, 300};
  open();
  raw_client client(port());
  const auto answer = client.request("GET", "/v1/batch");
  EXPECT_TRUE(answer.has("Cache-Control: no-store"));
  EXPECT_EQ(answer.body,
            R"({"running":3,"waiting":1,"max_num_seqs":256,"kv_blocks":{"used":7,"total":40,"block_size":16},)"
            R"("methods":["none","ngram","draft_model"],"max_speculative_tokens":8,)"
            R"("totals":{"steps":100,"prompt_tokens":200,"generation_tokens":300},)"
            R"("last_step":{"rows":9,"prompt_tokens":2,"generated_tokens":5,"step_ms":4,"device_ms":3,"undrafted":1,)"
            R"("drafting":2,"sequences":[{"method":"ngram","k":4,"draft_n":4,"draft_n_accepted":3},)"
            R"({"method":"ngram","k":2,"draft_n":0,"draft_n_accepted":0}]}})");
}

TEST_F(page_edge, a_batch_in_which_nothing_runs_has_no_step) {
  runtime_->seen.last.emplace();
  open();
  raw_client client(port());
  EXPECT_NE(client.request("GET", "/v1/batch").body.find(R"("last_step":null})"), std::string::npos);
}

}  // namespace
}  // namespace tandem::net::test

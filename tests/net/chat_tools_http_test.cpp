// Tools of a chat over HTTP: what the model's text becomes on the wire.

#include <gtest/gtest.h>

#include <string>

#include "tests/net/edge.hpp"

namespace tandem::net::test {
namespace {

const std::string kFields = R"("messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":)"
                            R"({"name":"add","parameters":{"type":"object"}}}])";

class chat_tools_http : public edge {
 protected:
  std::string ask(const std::string& more = {}) {
    raw_client client(port());
    const auto answer = client.request("POST", "/v1/chat/completions", "{" + kFields + more + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }
  void open_with(const std::string& template_source, server_options options = {}) {
    runtime_->template_source = template_source;
    runtime_->script = {{"<tool_call>{\"name\": \"add\", "}, {"\"arguments\": {}}"}, {"</tool_call>", true}};
    open(std::move(options));
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(chat_tools_http, the_template_says_how_calls_are_read) {
  open_with("… <tool_call> …");
  const std::string whole = ask();
  EXPECT_TRUE(has(whole, R"("content":null,"tool_calls":[{"id":"call_)")) << whole;
  EXPECT_TRUE(has(whole, R"("finish_reason":"tool_calls")"));
  const std::string streamed = ask(R"(,"stream":true)");
  EXPECT_TRUE(has(streamed, R"("function":{"name":"add","arguments":""})")) << streamed;
  EXPECT_TRUE(has(streamed, R"("function":{"arguments":"{}"})"));
}

TEST_F(chat_tools_http, without_a_known_format_calls_stay_text) {
  open_with("no tools here");
  EXPECT_TRUE(has(ask(), R"("content":"<tool_call>{)"));
}

TEST_F(chat_tools_http, the_server_may_name_the_format) {
  server_options options;
  options.tool_calls = tool_call_format::none;
  open_with("… <tool_call> …", std::move(options));
  EXPECT_TRUE(has(ask(), R"("content":"<tool_call>{)"));
}

TEST_F(chat_tools_http, ids_of_calls_differ_between_answers) {
  open_with("<tool_call>");
  const auto id_in = [](const std::string& body) { return body.substr(body.find("call_"), 30); };
  EXPECT_NE(id_in(ask()), id_in(ask()));
}

}  // namespace
}  // namespace tandem::net::test

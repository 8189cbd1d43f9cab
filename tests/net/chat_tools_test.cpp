// Tools of a chat, from the request's fields to the answer's.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/edge_limits.hpp"
#include "net/openai_answers.hpp"
#include "net/openai_requests.hpp"

namespace tandem::net {
namespace {

const std::string kTool = R"({"type":"function","function":{"name":"add","parameters":{"type":"object"}}})";

request_facts facts(tool_call_format format = tool_call_format::hermes) {
  request_facts known;
  known.model_names = {"m"};
  known.vocabulary = 1000;
  known.max_model_len = 2048;
  known.has_chat_template = true;
  known.tool_calls = format;
  return known;
}

result<api_request> chat(const std::string& fields, const request_facts& known = facts()) {
  return parse_chat(R"({"messages":[{"role":"user","content":"x"}],)" + fields + "}", {}, known);
}

std::string tool(const std::string& function) {
  return R"("tools":[{"type":"function","function":)" + function + "}]";
}

TEST(chat_tools, reach_the_template_and_the_answer) {
  const auto asked = chat("\"tools\":[" + kTool + "],\"parallel_tool_calls\":false");
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(std::get<chat_prompt>(asked->prompts.front().prompt).tools_json, "[" + kTool + "]");
  EXPECT_EQ(asked->tools.format, tool_call_format::hermes);
  EXPECT_EQ(asked->tools.offered, std::vector<std::string>{"add"});
  EXPECT_FALSE(asked->tools.parallel);
  EXPECT_FALSE(chat("\"tools\":[]")->tools.wanted());
  EXPECT_FALSE(chat("\"tools\":[" + kTool + "]", facts(tool_call_format::none))->tools.wanted());
  EXPECT_TRUE(chat("\"tools\":[" + kTool + "],\"tool_choice\":\"auto\"")->tools.wanted());
  EXPECT_FALSE(chat("\"tools\":[" + kTool + "],\"tool_choice\":\"none\"")->tools.wanted());
  EXPECT_TRUE(chat(R"("tool_choice":"auto")"));  // as some clients always send it
}

TEST(chat_tools, special_tags_keep_their_text_unless_the_client_says_otherwise) {
  auto special = facts();
  special.special_tool_tags = true;
  const std::string tools = "\"tools\":[" + kTool + "]";
  const auto skips = [](const result<api_request>& asked) {
    return asked->prompts.front().stopping.skip_special_tokens;
  };
  EXPECT_TRUE(skips(chat(tools)));
  EXPECT_FALSE(skips(chat(tools, special)));
  EXPECT_TRUE(skips(chat(tools + R"(,"skip_special_tokens":true)", special)));
  EXPECT_TRUE(skips(chat(tools + R"(,"tool_choice":"none")", special)));
}

TEST(chat_tools, mistakes_are_refused_with_their_place) {
  const std::string long_name(limits::kMaxToolNameBytes + 1, 'a');
  const std::pair<std::string, std::string> wrong[] = {
      {R"("tools":{})", "tools"},
      {R"("tools":[1])", "tools[0]"},
      {R"("tools":[{}])", "tools[0].type"},
      {R"("tools":[{"type":"retrieval"}])", "tools[0].type"},
      {R"("tools":[{"type":"function"}])", "tools[0].function"},
      {"\"tools\":[" + kTool + R"(,{"type":"function","function":"f"}])", "tools[1].function"},
      {tool("{}"), "tools[0].function.name"},
      {tool(R"({"name":""})"), "tools[0].function.name"},
      {tool(R"({"name":"no spaces"})"), "tools[0].function.name"},
      {tool("{\"name\":\"" + long_name + "\"}"), "tools[0].function.name"},
      {"\"tools\":[" + kTool + "," + kTool + "]", "tools[1].function.name"},
      {tool(R"({"name":"f","parameters":[]})"), "tools[0].function.parameters"},
      {tool(R"({"name":"f","parameters":{"type":"string"}})"), "tools[0].function.parameters.type"},
      {tool(R"({"name":"f","description":1})"), "tools[0].function.description"},
      {tool(R"({"name":"f","strict":"yes"})"), "tools[0].function.strict"},
      {R"("tool_choice":"always")", "tool_choice"},
      {R"("tool_choice":7)", "tool_choice"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("parallel_tool_calls":1)", "parallel_tool_calls"}};
  for (const auto& [fields, place] : wrong) {
    const auto refused = chat(fields);
    ASSERT_FALSE(refused) << fields;
    EXPECT_EQ(refused.error().code, error_code::invalid_argument) << fields;
    EXPECT_EQ(refused.error().param, place) << fields;
  }
  std::string many = kTool;
  for (std::size_t i = 0; i < limits::kMaxTools; ++i) many += "," + kTool;
  EXPECT_EQ(chat("\"tools\":[" + many + "]").error().param, "tools");
}

TEST(chat_tools, the_older_form_is_refused_by_name) {
  for (const std::string fields : {R"("functions":[{"name":"f"}])", R"("function_call":"auto")"}) {
    const auto refused = chat(fields);
    ASSERT_FALSE(refused) << fields;
    EXPECT_EQ(refused.error().code, error_code::unsupported) << fields;
  }
}

// --- calls that are enforced -------------------------------------------------------------------------------------

const std::string kTwo = R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","x":1}}},)"
                         R"({"type":"function","function":{"name":"g"}}])";
const std::string kOneStrict =
    R"("tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","x":1}}},)"
    R"({"type":"function","function":{"name":"g","parameters":{"type":"object","x":2}}}])";
const std::string kNamed = R"("tool_choice":{"type":"function","function":{"name":"f"}})";

std::string grammar_of(const result<api_request>& asked) {
  if (!asked) return asked.error().message;
  const auto& spec = asked->prompts.front().structured;
  return spec ? spec->text : "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(chat_tools, a_call_that_is_required_is_enforced_by_a_grammar) {
  const auto asked = chat(kTwo + R"(,"tool_choice":"required")");
  const std::string grammar = grammar_of(asked);
  EXPECT_TRUE(
      says(grammar, R"("type":"tags_with_separator","separator":"\n","at_least_one":true,"stop_after_first":false)"))
      << grammar;
  EXPECT_TRUE(says(grammar, R"({"type":"tag","begin":"<tool_call>\n{\"name\": \"f\", \"arguments\": ","content":)"
                            R"({"type":"json_schema","json_schema":{"type":"object","x":1}},"end":"}\n</tool_call>"})"))
      << grammar;
  EXPECT_TRUE(says(grammar, R"("json_schema":{"type":"object","additionalProperties":true})")) << grammar;
  EXPECT_EQ(asked->prompts.front().structured->kind, structured_spec::form::structural_tag);
  EXPECT_FALSE(asked->prompts.front().structured->strict);
  EXPECT_FALSE(asked->tools.by_name);
  EXPECT_TRUE(says(grammar_of(chat(kTwo + R"(,"tool_choice":"required","parallel_tool_calls":false)")),
                   R"("stop_after_first":true)"));
}

TEST(chat_tools, a_function_that_is_named_is_the_only_one_and_called_once) {
  const auto asked = chat(kTwo + "," + kNamed);
  const std::string grammar = grammar_of(asked);
  EXPECT_TRUE(says(grammar, R"("stop_after_first":true)")) << grammar;
  EXPECT_FALSE(says(grammar, R"(\"g\")")) << grammar;
  EXPECT_TRUE(asked->tools.by_name);
  EXPECT_TRUE(says(grammar_of(chat(kTwo + "," + kNamed, facts(tool_call_format::llama3_json))),
                   R"("begin":"{\"name\": \"f\", \"parameters\": ")"));
}

TEST(chat_tools, strict_functions_are_enforced_behind_their_tag_and_others_take_any_object) {
  const auto asked = chat(kOneStrict);
  const std::string grammar = grammar_of(asked);
  EXPECT_TRUE(says(grammar, R"("type":"triggered_tags","triggers":["<tool_call>"])")) << grammar;
  EXPECT_TRUE(says(grammar, R"({"type":"object","x":1})")) << grammar;
  EXPECT_FALSE(says(grammar, R"({"type":"object","x":2})")) << grammar;
  EXPECT_TRUE(asked->prompts.front().structured->strict);
  EXPECT_TRUE(asked->tools.tags_only);
  EXPECT_EQ(grammar_of(chat(kOneStrict + R"(,"tool_choice":"none")")), "");
  EXPECT_EQ(grammar_of(chat(kTwo)), "");
}

TEST(chat_tools, what_cannot_be_enforced_is_refused) {
  const auto refused = [](const std::string& fields, tool_call_format format) {
    const auto asked = chat(fields, facts(format));
    return asked ? error_code::cancelled : asked.error().code;
  };
  EXPECT_EQ(refused(kTwo + R"(,"tool_choice":"required")", tool_call_format::none), error_code::unsupported);
  EXPECT_EQ(refused(kOneStrict, tool_call_format::none), error_code::unsupported);
  EXPECT_EQ(refused(kOneStrict, tool_call_format::llama3_json), error_code::unsupported);
  EXPECT_EQ(refused(kTwo + R"(,"tool_choice":{"type":"function","function":{"name":"h"}})", tool_call_format::hermes),
            error_code::invalid_argument);
  EXPECT_EQ(refused(kTwo + R"(,"tool_choice":{},"n":1)", tool_call_format::hermes), error_code::invalid_argument);
  EXPECT_EQ(refused(kTwo + "," + kNamed + R"(,"response_format":{"type":"json_object"})", tool_call_format::hermes),
            error_code::invalid_argument);
}

// --- answers -----------------------------------------------------------------------------------------------------

answer_context context() {
  return {"id-1",
          1234,
          {[](token_id) { return std::string_view("t"); },
           [](std::span<const token_id> ids) { return std::string(ids.size(), 'p'); }},
          "call_x_"};
}

answer_format format(std::int32_t n = 1) {
  answer_format wanted;
  wanted.shape = api_shape::chat;
  wanted.prompt_count = 1;
  wanted.model = "m";
  wanted.n = n;
  wanted.tools = {tool_call_format::hermes, {"add"}};
  return wanted;
}

generation_event piece(std::string text, std::int32_t choice = 0, std::optional<finish_reason> end = {}) {
  generation_event made;
  made.choice = choice;
  made.text = std::move(text);
  made.tokens = {0};
  made.logprobs = {{0, -0.5F, 1, {{0, -0.5F}}}};
  if (!end) return made;
  made.end = finish{};
  made.end->reason = *end;
  return made;
}

std::shared_ptr<const std::vector<token_id>> prompt() {
  return std::make_shared<const std::vector<token_id>>(std::vector<token_id>{0});
}

std::string whole(const answer_format& wanted, const std::string& text, finish_reason end = finish_reason::stop) {
  const auto answer = make_answer(wanted, context());
  std::string none;
  answer->accept(0, prompt());
  answer->append(0, piece(text, 0, end), none);
  return answer->whole();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const std::string kCall = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";

TEST(chat_tool_answers, a_whole_answer_has_its_calls_beside_its_words) {
  const std::string text = whole(format(), "Well.\n" + kCall + "\n" + kCall);
  EXPECT_TRUE(has(text, R"("content":"Well.","tool_calls":[{"id":"call_x_0_0","type":"function","function":)"
                        R"({"name":"add","arguments":"{\"a\": 1}"}},{"id":"call_x_0_1",)"))
      << text;
  EXPECT_TRUE(has(text, R"("finish_reason":"tool_calls","stop_reason":null)")) << text;
  EXPECT_TRUE(has(whole(format(), kCall), R"("content":null,"tool_calls":[)"));
}

TEST(chat_tool_answers, without_a_call_nothing_is_different) {
  auto plain = format();
  plain.tools = {};
  EXPECT_EQ(whole(format(), "Just words."), whole(plain, "Just words."));
  EXPECT_TRUE(has(whole(plain, kCall), R"("finish_reason":"stop")"));
  EXPECT_FALSE(has(whole(plain, kCall), "\"tool_calls\":"));
}

TEST(chat_tool_answers, the_finish_reason_tells_calls_only_of_an_answer_that_stopped) {
  EXPECT_TRUE(has(whole(format(), kCall, finish_reason::length), R"("finish_reason":"length")"));
  auto named = format();
  named.tools.by_name = true;
  EXPECT_TRUE(has(whole(named, kCall), R"("finish_reason":"stop")"));
  const std::string cut = whole(format(), kCall.substr(0, kCall.size() - 16), finish_reason::length);
  EXPECT_TRUE(has(cut, R"("content":"<tool_call>\n{)")) << cut;
}

TEST(chat_tool_answers, a_stream_names_the_function_first_and_then_its_arguments) {
  auto wanted = format();
  wanted.stream = true;
  const auto answer = make_answer(wanted, context());
  answer->accept(0, prompt());
  std::string bytes = answer->begin();
  for (const char* text :
       {"Well.\n<tool", "_call>{\"name\": \"a", "dd\", \"arguments\": {\"a\"", ": 1}", "}</tool_call>"})
    answer->append(0, piece(text), bytes);
  answer->append(0, piece("", 0, finish_reason::stop), bytes);
  bytes += answer->finish();
  const std::vector<std::string> expected = {
      R"("delta":{"content":"Well."})",
      R"("delta":{"tool_calls":[{"index":0,"id":"call_x_0_0","type":"function","function":{"name":"add","arguments":""}}]})",
      R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]})",
      R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":": 1}"}}]})",
      R"("delta":{},"logprobs":null,"finish_reason":"tool_calls")"};
  std::size_t at = 0;
  for (const std::string& part : expected) {
    at = bytes.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\nin " << bytes;
  }
  EXPECT_EQ(count(bytes, "\"delta\":"), expected.size() + 1);  // and the role
}

TEST(chat_tool_answers, choices_of_a_stream_are_read_each_for_itself) {
  auto wanted = format(2);
  wanted.stream = true;
  const auto answer = make_answer(wanted, context());
  answer->accept(0, prompt());
  std::string bytes = answer->begin();
  answer->append(0, piece("<tool_call>{\"name\": \"add\", ", 0), bytes);
  answer->append(0, piece("words", 1), bytes);
  answer->append(0, piece("\"arguments\": {}}", 0, finish_reason::stop), bytes);
  answer->append(0, piece(".", 1, finish_reason::stop), bytes);
  EXPECT_TRUE(has(bytes, R"("index":1,"delta":{"content":"words"})")) << bytes;
  EXPECT_TRUE(has(bytes, R"("index":0,"delta":{"tool_calls":[{"index":0,"id":"call_x_0_0")")) << bytes;
  EXPECT_EQ(count(bytes, R"("finish_reason":"tool_calls")"), 1u);
  EXPECT_EQ(count(bytes, R"("finish_reason":"stop")"), 1u);
}

TEST(chat_tool_answers, every_token_has_its_logprob_once_also_where_nothing_is_told_yet) {
  auto wanted = format();
  wanted.stream = true;
  wanted.logprobs = true;
  wanted.return_token_ids = true;
  const auto answer = make_answer(wanted, context());
  answer->accept(0, prompt());
  std::string bytes = answer->begin();
  for (const char* text : {"a <tool", "_call>", "{\"name\": \"add\", \"arguments\": {}}"})
    answer->append(0, piece(text), bytes);
  answer->append(0, piece("", 0, finish_reason::stop), bytes);
  EXPECT_EQ(count(bytes, R"("top_logprobs":[)"), 4u) << bytes;
  EXPECT_EQ(count(bytes, R"("token_ids":[0])"), 4u) << bytes;
}

}  // namespace
}  // namespace tandem::net

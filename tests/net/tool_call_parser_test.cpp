#include "net/tool_calls/tool_call_parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "config/edge_limits.hpp"
#include "config/limits.hpp"
#include "net/json_document.hpp"
#include "net/tool_calls/json_scanner.hpp"

namespace tandem::net {
namespace {

using kind = tool_event::kind;

tool_calling calling(tool_call_format format, bool parallel = true) {
  return {format, {"get_weather", "add"}, parallel};
}

// Content as it is, calls as name(arguments) between marks, "?" before one that broke after its begin.
std::string shown(const tool_events& events) {
  std::string out;
  std::string call;
  for (const tool_event& event : events) {
    switch (event.what) {
      case kind::content:
        out += event.text;
        break;
      case kind::begin:
        call = event.text + "(";
        break;
      case kind::arguments:
        call += event.text;
        break;
      case kind::complete:
        out += "[" + call + ")]";
        break;
      case kind::malformed:
        out += "[?" + call + ")]";
    }
  }
  return out;
}

std::string streamed(const tool_calling& wanted, std::string_view text, std::size_t piece) {
  const auto parser = make_tool_call_parser(wanted);
  tool_events all;
  for (std::size_t at = 0; at < text.size(); at += piece)
    for (tool_event& event : parser->feed(text.substr(at, piece))) all.push_back(std::move(event));
  for (tool_event& event : parser->finish()) all.push_back(std::move(event));
  return shown(all);
}

// Every way of cutting the text gives the same.
std::string read(tool_call_format format, std::string_view text, bool parallel = true) {
  const tool_calling wanted = calling(format, parallel);
  const std::string whole = streamed(wanted, text, text.size() + 1);
  for (std::size_t piece = 1; piece <= 24; ++piece) EXPECT_EQ(streamed(wanted, text, piece), whole) << piece;
  return whole;
}

std::string hermes(std::string_view text, bool parallel = true) {
  return read(tool_call_format::hermes, text, parallel);
}
std::string llama(std::string_view text, bool parallel = true) {
  return read(tool_call_format::llama3_json, text, parallel);
}

// What a whole answer says.
std::string whole(tool_call_format format, std::string_view text) {
  const tool_message message = parse_tool_message(text, calling(format));
  std::string out = message.content;
  for (const auto& call : message.calls) out += "[" + call.name + "(" + call.arguments + ")]";
  return out;
}

TEST(hermes_parser, reads_calls_between_words) {
  EXPECT_EQ(hermes("Plain words."), "Plain words.");
  EXPECT_EQ(hermes("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>"), "[add({\"a\": 1})]");
  EXPECT_EQ(hermes("I look.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n"
                   "{\"name\": \"get_weather\", \"arguments\": {\"c\": [\"}\", {\"\\\"\": null}]}}\n</tool_call>\n"),
            "I look.[add({})][get_weather({\"c\": [\"}\", {\"\\\"\": null}]})]");
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"add\"}</tool_call> Then this."), "[add({})] Then this.");
}

TEST(hermes_parser, takes_what_models_write_around_the_rules) {
  // Arguments first, as text, or null; another member; the end tag missing.
  EXPECT_EQ(hermes("<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"add\"}</tool_call>"), "[add({\"a\": 1})]");
  EXPECT_EQ(hermes(R"(<tool_call>{"name": "add", "arguments": "{\"a\": 1}"}</tool_call>)"), "[add({\"a\": 1})]");
  EXPECT_EQ(hermes("<tool_call>{\"name\": \"add\", \"arguments\": null}</tool_call>"), "[add({})]");
  EXPECT_EQ(hermes("<tool_call>{\"id\": 7, \"name\": \"add\", \"parameters\": {}}"), "[add({})]");
  EXPECT_EQ(hermes("<tool_call>{\"name\": \"add\", \"arguments\": {}}}</tool_call>"), "[add({})]}</tool_call>");
  EXPECT_EQ(hermes("<tool_call>{\"name\": \"add\", \"arguments\": {}}\n</tool_"), "[add({})]");
}

TEST(hermes_parser, gives_malformed_calls_back_as_they_were) {
  for (const std::string_view text :
       {"<tool_call>\nnonsense\n</tool_call>", "a <tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"arguments\": {}}</tool_call>", "<tool_call>{\"name\": 7, \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"add\", \"arguments\": [1]}</tool_call>", "<tool_call>[]</tool_call>",
        "<tool_call>{\"name\": \"add\", \"arguments\": \"no\"}</tool_call>", " \n <tool_call>", "<tool_call",
        "</tool_call>", "<tool_call>{\"name\": \"add\", ", "<tool_call>{\"na\\u006de\": \"add\"}</tool_call>"}) {
    EXPECT_EQ(hermes(text), text);
    EXPECT_EQ(whole(tool_call_format::hermes, text), text);
  }
}

TEST(hermes_parser, takes_calls_without_tags_where_only_their_name_tells) {
  const std::string call = R"({"name": "add", "arguments": {"a": 1}})";
  EXPECT_EQ(hermes(call), "[add({\"a\": 1})]");
  EXPECT_EQ(hermes("\n" + call + "\n" + call + "\n"), "[add({\"a\": 1})][add({\"a\": 1})]");
  EXPECT_EQ(hermes(call + " and words " + call), "[add({\"a\": 1})] and words " + call);
  EXPECT_EQ(hermes("```json\n" + call + "\n```"), "[add({\"a\": 1})]");
  EXPECT_EQ(hermes("Like this:\n```json\n" + call + "\n``` Done."), "Like this:[add({\"a\": 1})] Done.");
  for (const std::string text : {R"({"city": "Paris", "name": "add"})", R"({"name": "John", "arguments": {}})",
                                 "```json\n{\"name\": \"John\"}\n```", "```json\n[1]\n``` and ```cpp\nx\n```",
                                 "``` `` `", "{", "See {\"name\": \"add\"}", "```json"}) {
    EXPECT_EQ(hermes(text), text);
    EXPECT_EQ(whole(tool_call_format::hermes, text), text);
  }
  EXPECT_EQ(hermes("```json\n{\"name\": \"add\", \"arguments\": {1}}\n``` x"), "[?add({1}}\n)] x");
}

TEST(hermes_parser, where_only_tags_count_calls_without_stay_text) {
  tool_calling wanted = calling(tool_call_format::hermes);
  wanted.tags_only = true;
  const std::string call = R"({"name": "add", "arguments": {}})";
  for (const std::string& text : {call, "```json\n" + call + "\n```"}) EXPECT_EQ(streamed(wanted, text, 3), text);
  EXPECT_EQ(streamed(wanted, "<tool_call>" + call + "</tool_call>", 3), "[add({})]");
}

TEST(hermes_parser, a_broken_call_does_not_hide_the_next_one) {
  EXPECT_EQ(hermes("<tool_call>\n<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>"),
            "<tool_call>\n[add({})]");
}

TEST(hermes_parser, a_call_that_breaks_late_is_content_in_a_whole_answer) {
  const std::string_view text = "Well\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": }}\n</tool_call> end";
  EXPECT_EQ(hermes(text), "Well[?add({\"a\": }}\n)] end");
  EXPECT_EQ(whole(tool_call_format::hermes, text), text);
  const std::string_view cut = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"long te";
  EXPECT_EQ(hermes(cut), "[?add({\"a\": \"long te)]");
  EXPECT_EQ(whole(tool_call_format::hermes, cut), cut);
}

TEST(hermes_parser, thoughts_are_left_as_they_are) {
  const std::string_view text =
      "<think>\nMaybe <tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>?\n</think>\n\n";
  EXPECT_EQ(hermes(text), text);
  EXPECT_EQ(hermes(std::string(text) + "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>"),
            std::string(text.substr(0, text.size() - 2)) + "[add({})]");
  EXPECT_EQ(hermes("<think> never ends <tool_call>"), "<think> never ends <tool_call>");
}

TEST(llama3_parser, reads_calls_that_are_the_whole_text) {
  EXPECT_EQ(llama("{\"name\": \"add\", \"parameters\": {\"a\": 1}}"), "[add({\"a\": 1})]");
  EXPECT_EQ(llama("<|python_tag|>{\"name\": \"add\", \"arguments\": {}}"), "[add({})]");
  EXPECT_EQ(llama(" {\"name\": \"add\", \"parameters\": {}}; {\"name\": \"get_weather\", \"parameters\": {}}\n"),
            "[add({})][get_weather({})]");
  EXPECT_EQ(llama("<think>{}</think>{\"name\": \"add\", \"parameters\": {}}"), "<think>{}</think>[add({})]");
}

TEST(llama3_parser, leaves_other_text_alone) {
  for (const std::string_view text :
       {"Words {\"name\": \"add\", \"parameters\": {}}", "{\"answer\": 42}", "{\"name\": \"John\", \"parameters\": {}}",
        "  ", "{", "<|python_tag|>print(1)", "<|python_", "<think>", "; {}", "[1, 2]",
        "{\"name\": \"add\", \"parameters\": 1}"}) {
    EXPECT_EQ(llama(text), text);
    EXPECT_EQ(whole(tool_call_format::llama3_json, text), text);
  }
  EXPECT_EQ(llama("{\"name\": \"add\", \"parameters\": {}} and more; {\"name\": \"add\"}"),
            "[add({})] and more; {\"name\": \"add\"}");
  EXPECT_EQ(llama("{\"name\": \"add\", \"parameters\": {\"a\" 1}}"), "[?add({\"a\" 1}})]");
}

TEST(tool_call_parser, without_parallel_calls_only_the_first_is_told) {
  const std::string_view two =
      "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>\n"
      "<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}</tool_call> end";
  EXPECT_EQ(hermes(two, false), "[add({})] end");
  EXPECT_EQ(llama("{\"name\": \"add\"}; {\"name\": \"add\"}", false), "[add({})]");
}

TEST(tool_call_parser, arguments_are_told_while_they_are_written) {
  const auto parser = make_tool_call_parser(calling(tool_call_format::hermes));
  EXPECT_TRUE(parser->feed("<tool_call>{\"name\": \"add\", \"arguments\": ").empty());
  const tool_events begun = parser->feed("{\"a\": \"x");
  ASSERT_EQ(begun.size(), 2u);
  EXPECT_EQ(begun[0].what, kind::begin);
  EXPECT_EQ(begun[1].text, "{\"a\": \"x");
  EXPECT_EQ(parser->feed("yz\"").front().text, "yz\"");
}

TEST(tool_call_parser, words_are_told_as_soon_as_no_call_can_begin_in_them) {
  const auto parser = make_tool_call_parser(calling(tool_call_format::hermes));
  EXPECT_EQ(shown(parser->feed("a b <tool")), "a b");
  EXPECT_EQ(shown(parser->feed("box>")), " <toolbox>");
}

TEST(tool_call_parser, what_is_held_back_is_bounded) {
  const auto parser = make_tool_call_parser(calling(tool_call_format::hermes));
  EXPECT_EQ(parser->feed(std::string(2 * limits::kMaxHeldSpaceBytes, ' ')).front().text.size(),
            limits::kMaxHeldSpaceBytes);
  const std::string huge = "<tool_call>{\"name\": \"add\", \"x\": \"" + std::string(limits::kMaxToolCallBytes, 'y');
  EXPECT_EQ(whole(tool_call_format::hermes, huge + "\"}</tool_call>"), huge + "\"}</tool_call>");
}

TEST(tool_call_parser, the_format_is_known_from_the_template) {
  EXPECT_EQ(format_of_template("{{ messages }}"), tool_call_format::none);
  EXPECT_EQ(format_of_template("within <tool_call></tool_call> XML tags"), tool_call_format::hermes);
  EXPECT_EQ(
      format_of_template("'Respond in the format {\"name\": function name, \"parameters\": dictionary of argument "
                         "name and its value}.'"),
      tool_call_format::llama3_json);
}

TEST(json_scanner, agrees_with_the_parser_of_whole_texts) {
  const std::vector<std::string> texts = {"{}",
                                          "[]",
                                          "[1,2]",
                                          "[1,]",
                                          "{\"a\":1}",
                                          "{\"a\":1,}",
                                          "{a:1}",
                                          "[-0.5e+10]",
                                          "[01]",
                                          "[1.]",
                                          "[.5]",
                                          "[+1]",
                                          "[-]",
                                          "[1e]",
                                          "[0]",
                                          "[10]",
                                          "[true,false,null]",
                                          "[tru]",
                                          "[\"\\u00e9\\n\"]",
                                          "[\"\\x\"]",
                                          "[\"\\u12\"]",
                                          "[\"\t\"]",
                                          "{\"a\":{\"b\":[{}]}}",
                                          "{]",
                                          "[}",
                                          "[[]",
                                          "{\"a\" 1}",
                                          "{\"a\":}",
                                          "[1 2]",
                                          " [ 1 , \"x\" ] ",
                                          "{\"a\":1 \"b\":2}",
                                          "[\"",
                                          "[1e5,-0,0.0]",
                                          "[nul",
                                          "{\"a\"",
                                          "[,]",
                                          "{,}",
                                          "[\"a\" : 1]"};
  for (const std::string& text : texts) {
    json_scanner scanner;
    auto step = json_scanner::step::more;
    std::size_t at = 0;
    while (at < text.size() && step == json_scanner::step::more) step = scanner.feed(text[at++]);
    const bool whole_value = step == json_scanner::step::last && text.find_first_not_of(" ", at) == std::string::npos;
    EXPECT_EQ(whole_value, json_document::parse(text, limits::kMaxJsonDepth).has_value()) << text;
  }
}

TEST(json_scanner, D5_nesting_is_bounded) {
  json_scanner scanner;
  std::size_t depth = 0;
  while (scanner.feed('[') == json_scanner::step::more) ++depth;
  EXPECT_EQ(depth, limits::kMaxJsonDepth);
}

}  // namespace
}  // namespace tandem::net

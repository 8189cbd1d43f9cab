// The grammars that net/ writes for calls of tools, compiled and tried.

#include "net/tool_calls/tool_grammar.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/grammar/grammar_lab.hpp"

namespace tandem::testing {
namespace {

using net::tool_call_format;
using net::tool_calling;
using net::tool_demand;
using net::tool_function;

const std::string kNumbers =
    R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})";

class tool_grammars : public ::testing::Test {
 protected:
  bool fits(const std::string& text) {
    const auto spec = net::tool_grammar(functions_, calling_, demand_);
    EXPECT_TRUE(spec);
    const auto compiled = lab_.compiler->compile(*spec);
    EXPECT_TRUE(compiled) << compiled.error().message;
    return compiled && lab_.fits(**compiled, text);
  }

  const grammar_lab lab_;
  std::vector<tool_function> functions_ = {{"add", kNumbers, false}, {"any", "", false}};
  tool_calling calling_{tool_call_format::hermes, {"add", "any"}};
  tool_demand demand_{true, ""};
};

const std::string kAdd = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 12}}\n</tool_call>";
const std::string kAny = "<tool_call>\n{\"name\": \"any\", \"arguments\": {\"x\": [true]}}\n</tool_call>";

TEST_F(tool_grammars, required_is_one_call_or_several_and_nothing_else) {
  EXPECT_TRUE(fits(kAdd));
  EXPECT_TRUE(fits(kAny));
  EXPECT_TRUE(fits(kAny + "\n" + kAdd));
  EXPECT_FALSE(fits(""));
  EXPECT_FALSE(fits("words"));
  EXPECT_FALSE(fits(kAdd + " words"));
  EXPECT_FALSE(fits("<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(fits("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"ab\"}}\n</tool_call>"));
}

TEST_F(tool_grammars, without_parallel_calls_there_is_one) {
  calling_.parallel = false;
  EXPECT_TRUE(fits(kAdd));
  EXPECT_FALSE(fits(kAdd + "\n" + kAdd));
}

TEST_F(tool_grammars, a_named_function_is_called_once) {
  demand_.only = "add";
  EXPECT_TRUE(fits(kAdd));
  EXPECT_FALSE(fits(kAny));
  EXPECT_FALSE(fits(kAdd + "\n" + kAdd));
}

TEST_F(tool_grammars, llama_calls_are_plain_objects) {
  calling_.format = tool_call_format::llama3_json;
  EXPECT_TRUE(fits("{\"name\": \"add\", \"parameters\": {\"a\": 12}}"));
  EXPECT_TRUE(fits("{\"name\": \"add\", \"parameters\": {\"a\": 12}}; {\"name\": \"any\", \"parameters\": {}}"));
  EXPECT_FALSE(fits("{\"name\": \"add\", \"parameters\": {}}"));
}

TEST_F(tool_grammars, strict_functions_are_enforced_between_free_words) {
  demand_.call = false;
  functions_[0].strict = true;
  EXPECT_TRUE(fits("ab ab"));
  EXPECT_TRUE(fits("ab\n" + kAdd + "\nab\n" + kAny));
  EXPECT_FALSE(fits("ab <tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(fits("ab <tool_call>nonsense"));
}

TEST_F(tool_grammars, a_strict_schema_that_cannot_be_enforced_is_refused) {
  functions_[0].schema_json = R"({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}})";
  EXPECT_TRUE(lab_.compiler->compile(*net::tool_grammar(functions_, calling_, demand_)));
  functions_[0].strict = true;
  const auto refused = lab_.compiler->compile(*net::tool_grammar(functions_, calling_, demand_));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param, "tools");
  EXPECT_NE(refused.error().message.find("uniqueItems"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace tandem::testing

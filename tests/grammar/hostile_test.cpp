// Specs that are made to hurt: they are refused or compile, and nothing else happens. The bound of time around a
// compiler is actors/compile_queue's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/structured_limits.hpp"
#include "tests/grammar/grammar_lab.hpp"

namespace tandem::testing {
namespace {

std::string repeated(const std::string& part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

/// Refused, or a grammar that can be walked.
void expect_survives(const grammar_lab& lab, form kind, const std::string& text) {
  const auto compiled = lab.compile(kind, text);
  if (!compiled) {
    EXPECT_EQ(compiled.error().code, error_code::invalid_argument);
    return;
  }
  const auto matcher = (*compiled)->start();
  for (int step = 0; step < 40 && !matcher->has_ended(); ++step) {
    const auto bits = lab.mask(*matcher);
    token_id next = 0;
    while (next < static_cast<token_id>(lab.tokens.tokens.size()) && !lab.bit(bits, next)) ++next;
    if (!matcher->accept(next)) break;
  }
}

TEST(hostile_specs, nesting_beyond_the_bound_is_refused) {
  const grammar_lab lab;
  const auto nested = [](std::size_t depth) {
    return repeated(R"({"type":"array","items":)", depth) + R"({"type":"null"})" + repeated("}", depth);
  };
  EXPECT_TRUE(lab.compile(form::json_schema, nested(limits::kMaxSchemaDepth - 1)));
  for (const std::size_t depth : {limits::kMaxSchemaDepth, std::size_t{2000}}) {
    const auto refused = lab.compile(form::json_schema, nested(depth));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("deep"), std::string::npos);
  }
  EXPECT_FALSE(lab.compile(form::regex, repeated("(", 20'000) + "a" + repeated(")", 20'000)));
  EXPECT_FALSE(lab.compile(form::ebnf, "root ::= " + repeated("(", 20'000) + "\"a\"" + repeated(")", 20'000)));
  EXPECT_FALSE(lab.compile(form::json_schema, repeated("[", 60'000)));
}

TEST(hostile_specs, expressions_that_ruin_other_engines_do_no_harm) {
  const grammar_lab lab;
  for (const std::string text : {"(a*)*b", "(a|aa)*b", "(a|a)*c", "([ab]*a[ab]{20}|x)y", "(a{1,1000}){1,1000}",
                                 "((a{1,100}){1,100}){1,100}b", "[a-z]{0,100000}", "(.*)(.*)(.*)(.*)(.*)x",
                                 "a{1000000000}", "a{99999999999999999999}", "a{5,2}", "(|a)+", "()"})
    expect_survives(lab, form::regex, text);
  expect_survives(lab, form::regex, repeated("(a|aa)*", 50) + "b");
  expect_survives(lab, form::regex, repeated("(a?){50}", 20));
}

TEST(hostile_specs, schemas_of_huge_numbers_and_long_chains_do_no_harm) {
  const grammar_lab lab;
  for (const std::string text :
       {R"({"type":"string","minLength":100000000,"maxLength":1000000000})",
        R"({"type":"array","minItems":1000000000})", R"({"type":"string","minLength":-1})",
        R"({"type":"integer","minimum":-1e308,"maximum":1e308})",
        R"({"type":"integer","minimum":9223372036854775807,"maximum":-9223372036854775808})",
        R"({"type":"number","minimum":-1.5e300,"maximum":1.2e-300})", R"({"type":"number","multipleOf":1e-30})",
        R"({"type":"string","pattern":"^(a{1,500}b{1,500}){1,500}$"})",
        R"({"type":"object","properties":{"c":{"$ref":"#"}},"required":["c"]})",
        R"({"anyOf":[{"$ref":"#"},{"$ref":"#"}]})", R"({"type":"object","minProperties":1000000})",
        R"({"type":"object","patternProperties":{"(":{}}})",
        R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})"})
    expect_survives(lab, form::json_schema, text);
}

TEST(hostile_specs, chains_of_references_do_not_exhaust_the_stack) {
  const grammar_lab lab;
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 700; ++i)
    chain += fmt::format(R"("d{}":{{"type":"object","properties":{{"x":{{"$ref":"#/$defs/d{}"}}}},"required":["x"]}},)",
                         i, i + 1);
  chain += R"("d700":{"type":"null"}}})";
  ASSERT_LT(chain.size(), limits::kMaxStructuredBytes);
  expect_survives(lab, form::json_schema, chain);
  std::string rules = "root ::= r0\n";
  for (int i = 0; i < 2500; ++i) rules += fmt::format("r{} ::= \"a\" r{} \"b\" | \"x\"\n", i, i + 1);
  expect_survives(lab, form::ebnf, rules + "r2500 ::= \"c\"\n");
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) doubling += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  expect_survives(lab, form::ebnf, doubling + "r60 ::= \"a\"\n");
  expect_survives(lab, form::ebnf, "root ::= root root | \"a\" | \"\"");
}

TEST(hostile_specs, every_cut_of_a_spec_is_refused_or_compiles) {
  const grammar_lab lab;
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"string","pattern":"^[a-c]{2}$"}}})";
  for (std::size_t cut = 0; cut <= schema.size(); ++cut) expect_survives(lab, form::json_schema, schema.substr(0, cut));
  const std::string regex = R"(^(a|[b-d]{2,3}?)\d+\x41(?:e|f)*.$)";
  for (std::size_t cut = 0; cut <= regex.size(); ++cut) expect_survives(lab, form::regex, regex.substr(0, cut));
  const std::string rules = "root ::= (\"a\" | [^b-c] x){2,3} # comment\nx ::= \"\\u00e9\"*";
  for (std::size_t cut = 0; cut <= rules.size(); ++cut) expect_survives(lab, form::ebnf, rules.substr(0, cut));
}

}  // namespace
}  // namespace tandem::testing

#include <gtest/gtest.h>

#include "config/structured_limits.hpp"
#include "tests/grammar/grammar_lab.hpp"

namespace tandem::testing {
namespace {

TEST(grammar_compiler, a_json_object_is_any_object_and_nothing_else) {
  const grammar_lab lab;
  for (const char* good :
       {"{}", R"({"a":1})", R"({"a":{"b":[1,-2.5e3,"x",null,true,{}]},"c":"\u00e9\n"})", "{ \"a\" : 1 }"})
    EXPECT_TRUE(lab.fits(form::json_object, "", good)) << good;
  for (const char* bad : {"", "[]", "1", "\"a\"", "{", R"({"a"})", R"({"a":1,})", R"({a:1})", "{} ", R"({"a":01})"})
    EXPECT_FALSE(lab.fits(form::json_object, "", bad)) << bad;
}

TEST(grammar_compiler, white_space_between_two_parts_has_a_bound) {
  const grammar_lab lab;
  const std::string most(static_cast<std::size_t>(limits::kMaxJsonWhitespace), ' ');
  EXPECT_TRUE(lab.fits(form::json_object, "", "{" + most + R"("a":1})"));
  EXPECT_FALSE(lab.fits(form::json_object, "", "{" + most + R"( "a":1})"));
}

TEST(grammar_compiler, a_schema_says_names_order_types_and_ranges) {
  const grammar_lab lab;
  const std::string schema = R"({"type": "object", "properties": {
      "z": {"type": "integer", "minimum": 3, "maximum": 12}, "a": {"enum": ["x", "é", null]},
      "list": {"type": "array", "items": {"type": "string", "pattern": "^[ab]{2}$"}, "maxItems": 2},
      "n": {"type": ["number", "null"]}}, "required": ["z", "a"]})";
  for (const char* good : {R"({"z": 3, "a": "x"})", R"({"z": 12, "a": null, "list": ["ab", "ba"]})",
                           R"({"z": 7, "a": "é", "n": -0.5})", R"({"z": 7, "a": "x", "list": [], "n": null})"})
    EXPECT_TRUE(lab.fits(form::json_schema, schema, good)) << good;
  for (const char* bad : {R"({"z": 2, "a": "x"})", R"({"z": 13, "a": "x"})", R"({"a": "x", "z": 3})", R"({"z": 3})",
                          R"({"z": 3, "a": "y"})", R"({"z": 3, "a": "x", "list": ["abc"]})",
                          R"({"z": 3, "a": "x", "list": ["aa", "aa", "aa"]})", R"({"z": 3, "a": "x", "more": 1})"})
    EXPECT_FALSE(lab.fits(form::json_schema, schema, bad)) << bad;
}

TEST(grammar_compiler, strings_hold_well_formed_characters_and_no_raw_control_character) {
  const grammar_lab lab;
  for (const char* schema : {R"({"type": "string"})", R"({"type": "string", "minLength": 1, "maxLength": 3})",
                             R"({"type": "string", "pattern": "^.{1,3}$"})"}) {
    for (const char* good : {"\"a\"", "\"é€\"", "\"\xF0\x9F\x98\x80\"", "\"\x7F\""})
      EXPECT_TRUE(lab.fits(form::json_schema, schema, good)) << schema << good;
    for (const char* bad : {"\"\x01\"", "\"\t\"", "\"\n\"", "\"\x1F\"", "\"\\\"", "\"\xC3\"", "\"\xA9\"",
                            "\"\xC0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xFF\""})
      EXPECT_FALSE(lab.fits(form::json_schema, schema, bad)) << schema << bad;
    EXPECT_FALSE(lab.fits(form::json_schema, schema, std::string_view("\"\0\"", 3)));
  }
}

TEST(grammar_compiler, a_schema_may_refer_to_itself) {
  const grammar_lab lab;
  const std::string tree = R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
      "v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
      "required": ["v", "next"]}}})";
  EXPECT_TRUE(lab.fits(form::json_schema, tree, R"({"v": 1, "next": {"v": 2, "next": null}})"));
  EXPECT_FALSE(lab.fits(form::json_schema, tree, R"({"v": 1, "next": {"v": 2}})"));
}

TEST(grammar_compiler, a_regular_expression_matches_the_whole_output) {
  const grammar_lab lab;
  const std::string date = R"([0-9]{4}-(0[1-9]|1[0-2])( [a-z]+)?)";
  EXPECT_TRUE(lab.fits(form::regex, date, "2024-12"));
  EXPECT_TRUE(lab.fits(form::regex, date, "2024-01 abc"));
  for (const char* bad : {"2024-13", "2024-1", "x2024-12", "2024-12 ", "2024-12 A"})
    EXPECT_FALSE(lab.fits(form::regex, date, bad)) << bad;
  EXPECT_TRUE(lab.fits(form::regex, "é+|.", "éé"));
  EXPECT_TRUE(lab.fits(form::regex, "^ab$", "ab"));
}

TEST(grammar_compiler, a_choice_is_one_of_its_strings_byte_for_byte) {
  const grammar_lab lab;
  structured_spec spec = spec_of(form::choice, "");
  spec.choices = {"yes", "no", "no way", "a \"quoted\"\\ line\n", "é{}[]|*", "tab\there"};
  const auto compiled = lab.compiler->compile(spec);
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const std::string& choice : spec.choices) EXPECT_TRUE(lab.fits(**compiled, choice)) << choice;
  for (const char* bad : {"", "ye", "yesno", "no wa", "No", "é"}) EXPECT_FALSE(lab.fits(**compiled, bad)) << bad;
  spec.choices = {"only"};
  EXPECT_TRUE(lab.fits(*lab.compiler->compile(spec).value(), "only"));
  spec.choices = {"\xFF"};
  EXPECT_FALSE(lab.compiler->compile(spec));
}

TEST(grammar_compiler, a_grammar_is_read_from_its_root_on) {
  const grammar_lab lab;
  const std::string sums = "root ::= term (\" + \" term)*\nterm ::= [1-9] [0-9]* | \"(\" root \")\"\n";
  EXPECT_TRUE(lab.fits(form::ebnf, sums, "1 + (20 + 3) + 4"));
  EXPECT_FALSE(lab.fits(form::ebnf, sums, "1 + (20 + 3"));
  EXPECT_FALSE(lab.fits(form::ebnf, sums, "01"));
}

TEST(grammar_compiler, tagged_parts_stand_between_free_text) {
  const grammar_lab lab;
  const std::string tag = R"({"type": "structural_tag", "format": {"type": "tag", "begin": "<call>", "end": "</call>",
      "content": {"type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {"type": "integer"}},
      "required": ["a"]}}}})";
  EXPECT_TRUE(lab.fits(form::structural_tag, tag, R"(<call>{"a": 1}</call>)"));
  EXPECT_FALSE(lab.fits(form::structural_tag, tag, R"(<call>{"b": 1}</call>)"));
}

TEST(grammar_compiler, what_cannot_be_read_is_refused_with_the_field_and_the_reason) {
  const grammar_lab lab;
  const std::vector<std::pair<form, std::string>> broken = {
      {form::json_schema, "{"},
      {form::json_schema, "[]"},
      {form::json_schema, "7"},
      {form::json_schema, R"({"type": 5})"},
      {form::json_schema, R"({"type": "text"})"},
      {form::json_schema, R"({"type": "object", "properties": []})"},
      {form::json_schema, R"({"type": "string", "minLength": 5, "maxLength": 2})"},
      {form::json_schema, R"({"type": "string", "pattern": "("})"},
      {form::json_schema, R"({"enum": []})"},
      {form::json_schema, R"({"$ref": "#"})"},
      {form::json_schema, R"({"$ref": "#/$defs/none"})"},
      {form::json_schema, R"({"$ref": "http://elsewhere/schema"})"},
      {form::json_schema, "{\"type\": \"str\xFFing\"}"},
      {form::regex, "(a"},
      {form::regex, "a)"},
      {form::regex, "[a-"},
      {form::regex, "*"},
      {form::regex, "(?=a)b"},
      {form::regex, R"((a)\1)"},
      {form::regex, R"(\p{L})"},
      {form::ebnf, ""},
      {form::ebnf, "root ::= missing"},
      {form::ebnf, "root ::= \"a"},
      {form::ebnf, "other ::= \"a\""},
      {form::ebnf, "root ::= a\na ::= b\nb ::= a"},
      {form::structural_tag, "{}"},
      {form::structural_tag, "nonsense"},
  };
  for (const auto& [kind, text] : broken) {
    const auto compiled = lab.compile(kind, text);
    ASSERT_FALSE(compiled) << text;
    EXPECT_EQ(compiled.error().code, error_code::invalid_argument);
    EXPECT_EQ(compiled.error().param, "the_field");
    EXPECT_NE(compiled.error().message.find("the_field"), std::string::npos);
    EXPECT_EQ(compiled.error().message.find(".cc"), std::string::npos) << compiled.error().message;
  }
}

TEST(grammar_compiler, without_strict_what_cannot_be_enforced_is_passed_over) {
  const grammar_lab lab;
  const std::string schema = R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": true})";
  EXPECT_FALSE(lab.compile(form::json_schema, schema));
  const auto lenient = lab.compile(form::json_schema, schema, false);
  ASSERT_TRUE(lenient) << lenient.error().message;
  EXPECT_TRUE(lab.fits(**lenient, "[1, 1]"));
  EXPECT_FALSE(lab.fits(**lenient, "[\"a\"]"));
}

}  // namespace
}  // namespace tandem::testing

#include "grammar/schema_check.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

TEST(check_schema, a_strict_schema_must_be_enforced_as_a_whole) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"not": {"type": "null"}})", "'not'"},
      {R"({"type": "array", "uniqueItems": true})", "'uniqueItems'"},
      {R"({"type": "array", "contains": {}})", "'contains'"},
      {R"({"type": "object", "properties": {"a": {"type": "object", "dependentRequired": {}}}})",
       "the schema.properties.a has 'dependentRequired'"},
      {R"({"$defs": {"x": {"if": {}}}, "type": "null"})", "the schema.$defs.x"},
      {R"({"anyOf": [{"type": "null"}, {"type": "array", "items": {"else": {}}}]})", "the schema.anyOf[1].items"},
      {R"({"anyOf": [{"type": "null"}], "required": ["a"]})", "'required' beside 'anyOf'"},
      {R"({"$ref": "#/$defs/a", "minLength": 2})", "'minLength' beside '$ref'"},
      {R"({"oneOf": [], "anyOf": []})", "beside"},
      {R"({"minLength": 2})", "add the type"},
      {R"({"items": {"pattern": "a"}})", "add the type"},
  };
  for (const auto& [schema, part] : cases) {
    const auto refused = check_schema(schema, true);
    ASSERT_FALSE(refused) << schema;
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
    EXPECT_TRUE(check_schema(schema, false)) << schema;
  }
}

TEST(check_schema, words_that_restrict_nothing_and_names_of_properties_are_free) {
  for (const char* schema :
       {R"({})", R"({"title": "t", "description": "d", "$schema": "s", "default": 1, "examples": [], "$comment": ""})",
        R"({"type": "object", "properties": {"not": {"type": "null"}, "if": {"enum": [1]}}})",
        R"({"type": "string", "enum": ["a"]})", R"({"enum": [{"not": 1}]})", R"({"const": {"if": 2}})",
        R"({"type": "array", "uniqueItems": false})", R"({"$ref": "#/$defs/a", "$defs": {"a": {}}, "title": "t"})",
        R"({"properties": {"a": true}, "required": ["a"]})", R"({"type": "object", "additionalProperties": false})"})
    EXPECT_TRUE(check_schema(schema, true)) << schema;
}

TEST(check_schema, anything_but_an_object_is_refused_also_without_strict) {
  for (const char* text : {"", "{", "nonsense", "[]", "true", "\"a\"", "{\"a\": NaN}", "{} {}", "{\"a\": \"\xFF\"}"})
    EXPECT_FALSE(check_schema(text, false)) << text;
}

}  // namespace
}  // namespace tandem

#include "net/structured_fields.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tandem::net {
namespace {

using form = structured_spec::form;

struct read_outcome {
  std::optional<structured_spec> spec;
  std::optional<error> problem;
};

read_outcome read(const std::string& members) {
  const auto document = json_document::parse("{" + members + "}", 64).value();
  const auto object = as_object(document.root()).value();
  field_reader fields(object);
  read_outcome out;
  out.spec = read_structured(fields);
  out.problem = fields.problem();
  return out;
}

TEST(structured_fields, every_way_of_asking_becomes_one_spec) {
  struct expectation {
    const char* members;
    form kind;
    const char* text;
    const char* field;
    bool strict;
  };
  const expectation cases[] = {
      {R"("response_format":{"type":"json_object"})", form::json_object, "", "response_format", true},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"null"}}})",
       form::json_schema, R"({"type":"null"})", "response_format.json_schema.schema", false},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{"b":1,"a":2},"strict":true}})",
       form::json_schema, R"({"b":1,"a":2})", "response_format.json_schema.schema", true},
      {R"("structured_outputs":{"json":{"type":"null"}})", form::json_schema, R"({"type":"null"})",
       "structured_outputs.json", true},
      {R"("structured_outputs":{"json":"{}"})", form::json_schema, "{}", "structured_outputs.json", true},
      {R"("structured_outputs":{"json_object":true})", form::json_object, "", "structured_outputs.json_object", true},
      {R"("structured_outputs":{"regex":"a+","json":null})", form::regex, "a+", "structured_outputs.regex", true},
      {R"("structured_outputs":{"grammar":"root ::= \"a\""})", form::ebnf, R"(root ::= "a")",
       "structured_outputs.grammar", true},
      {R"("guided_json":{"type":"null"})", form::json_schema, R"({"type":"null"})", "guided_json", true},
      {R"("guided_regex":"a+")", form::regex, "a+", "guided_regex", true},
      {R"("guided_grammar":"g","response_format":{"type":"text"})", form::ebnf, "g", "guided_grammar", true},
  };
  for (const expectation& wanted : cases) {
    const read_outcome got = read(wanted.members);
    ASSERT_TRUE(got.spec && !got.problem) << wanted.members;
    EXPECT_EQ(got.spec->kind, wanted.kind) << wanted.members;
    EXPECT_EQ(got.spec->text, wanted.text);
    EXPECT_EQ(got.spec->field, wanted.field);
    EXPECT_EQ(got.spec->strict, wanted.strict) << wanted.members;
  }
  for (const char* members : {R"("structured_outputs":{"choice":["b","a"]})", R"("guided_choice":["b","a"])"}) {
    const read_outcome got = read(members);
    ASSERT_TRUE(got.spec) << members;
    EXPECT_EQ(got.spec->kind, form::choice);
    EXPECT_EQ(got.spec->choices, (std::vector<std::string>{"b", "a"}));
  }
}

TEST(structured_fields, responses_have_the_schema_beside_the_type) {
  const auto read_text = [](const std::string& members) {
    const auto document = json_document::parse("{" + members + "}", 64).value();
    const auto object = as_object(document.root()).value();
    field_reader fields(object);
    read_outcome out;
    out.spec = read_structured(fields);
    read_text_format(fields, out.spec);
    out.problem = fields.problem();
    return out;
  };
  const read_outcome schema =
      read_text(R"("text":{"format":{"type":"json_schema","name":"n","schema":{"type":"null"},"strict":true}})");
  ASSERT_TRUE(schema.spec && !schema.problem);
  EXPECT_EQ(schema.spec->text, R"({"type":"null"})");
  EXPECT_TRUE(schema.spec->strict);
  EXPECT_EQ(schema.spec->field, "text.format.schema");
  EXPECT_EQ(read_text(R"("text":{"format":{"type":"json_object"}})").spec->field, "text.format");
  for (const char* free : {"", R"("text":{})", R"("text":{"format":{"type":"text"}})"})
    EXPECT_FALSE(read_text(free).spec || read_text(free).problem) << free;
  for (const char* wrong :
       {R"("text":{"format":5})", R"("text":{"format":{"type":"json_schema"}})",
        R"("text":{"format":{"type":"grammar"}})", R"("guided_regex":"a","text":{"format":{"type":"json_object"}})"})
    EXPECT_EQ(read_text(wrong).problem->param, "text.format") << wrong;
}

TEST(structured_fields, nothing_is_asked_by_nothing) {
  for (const char* members : {"", R"("response_format":null)", R"("response_format":{"type":"text"})",
                              R"("guided_json":null,"structured_outputs":null)"}) {
    const read_outcome got = read(members);
    EXPECT_FALSE(got.spec || got.problem) << members;
  }
}

TEST(structured_fields, mistakes_are_told_with_their_field) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("response_format":"json")", "response_format"},
      {R"("response_format":{})", "response_format"},
      {R"("response_format":{"type":"xml"})", "response_format"},
      {R"("response_format":{"type":"json_schema"})", "response_format"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"n"}})", "response_format"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":5}})", "response_format.json_schema.schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":"yes"}})",
       "response_format.json_schema.strict"},
      {R"("structured_outputs":[])", "structured_outputs"},
      {R"("structured_outputs":{})", "structured_outputs"},
      {R"("structured_outputs":{"regex":5})", "structured_outputs.regex"},
      {R"("structured_outputs":{"choice":"a"})", "structured_outputs.choice"},
      {R"("structured_outputs":{"choice":["a",1]})", "structured_outputs.choice"},
      {R"("structured_outputs":{"json_object":1})", "structured_outputs.json_object"},
      {R"("structured_outputs":{"regex":"a","choice":["b"]})", "structured_outputs.choice"},
      {R"("guided_json":[])", "guided_json"},
      {R"("guided_choice":{})", "guided_choice"},
      {R"("guided_regex":"a","guided_grammar":"b")", "guided_grammar"},
      {R"("guided_regex":"a","response_format":{"type":"json_object"})", "guided_regex"},
  };
  for (const auto& [members, field] : cases) {
    const read_outcome got = read(members);
    ASSERT_TRUE(got.problem) << members;
    EXPECT_EQ(got.problem->param, field) << members;
    EXPECT_EQ(got.problem->code, error_code::invalid_argument);
  }
}

}  // namespace
}  // namespace tandem::net

#include <gtest/gtest.h>

#include <string>

#include "config/limits.hpp"
#include "net/json_document.hpp"
#include "net/json_text.hpp"

namespace tandem::net {
namespace {

bool parses(std::string_view text) {
  return json_document::parse(text, limits::kMaxJsonDepth).has_value();
}

std::string as_json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string repeat(std::string_view part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

TEST(json_in, D4_broken_texts_are_refused) {
  for (const std::string text : {"", "{", "{} {}", R"({"a":1,})", R"({"a":NaN})", R"({"a":Infinity})", "\xEF\xBB\xBF{}",
                                 "{'a':1}", "nul", R"({"a":01})", R"({"a":1e999})",
                                 R"({"a":123456789012345678901234567890})", R"({"a":"\x"})", "{\"a\":\"\n\"}"}) {
    EXPECT_FALSE(parses(text)) << text;
  }
}

TEST(json_in, D4_ill_formed_utf8_is_refused_wherever_it_stands) {
  for (const std::string text : {"{\"a\":\"\xFF\"}", "{\"\xFF\":1}", "{\"a\":\"\xC4\xE3\xBA\xC3\"}",
                                 "{\"a\":\"\xED\xA0\x80\"}", "{\"a\":\"\xC0\x80\"}"}) {
    EXPECT_FALSE(parses(text)) << text;
  }
  EXPECT_FALSE(parses(std::string("{\0}\0", 4)));
}

TEST(json_in, D4_lone_surrogates_are_refused_and_pairs_become_one_character) {
  for (const std::string text : {R"({"a":"\ud83d"})", R"({"a":"\ude00"})", R"({"a":"\ude00\ud83d"})",
                                 R"({"a":"\ud83d\n"})", R"({"a":"\ud83dx"})", R"({"x":{"y":["\uDFFF"]}})"}) {
    EXPECT_FALSE(parses(text)) << text;
  }
  const auto document = json_document::parse(R"({"a":"\ud83d\ude00","b":"\\ud83d","c":"x\u0000y"})", 64);
  ASSERT_TRUE(document);
  const auto object = as_object(document->root());
  EXPECT_EQ(as_string(*object->find("a")), "\xF0\x9F\x98\x80");
  EXPECT_EQ(as_string(*object->find("b")), "\\ud83d");
  EXPECT_EQ(as_string(*object->find("c")), std::string_view("x\0y", 3));
}

TEST(json_in, of_equal_keys_the_last_one_wins) {
  const auto document = json_document::parse(R"({"a":1,"b":2,"a":3,"b":null})", 64);
  ASSERT_TRUE(document);
  const auto object = as_object(document->root());
  EXPECT_EQ(json_text(*object->find("a")), "3");
  EXPECT_FALSE(object->find("b"));
}

TEST(json_in, D5_deep_nesting_is_refused_whether_closed_or_not) {
  for (const std::size_t depth : {100u, 1000u, 10'000u, 100'000u, 1'000'000u}) {
    EXPECT_FALSE(parses(repeat("[", depth)));
    EXPECT_FALSE(parses(repeat("[", depth) + repeat("]", depth)));
    EXPECT_FALSE(parses(R"({"unknown":)" + repeat(R"({"a":)", depth) + "1" + repeat("}", depth) + "}"));
  }
  EXPECT_TRUE(parses(repeat("[", 60) + repeat("]", 60)));
}

TEST(json_out, writes_anything_as_a_valid_string) {
  EXPECT_EQ(as_json("a\"b\\c\n\t\x01"), R"("a\"b\\c\n\t\u0001")");
  EXPECT_EQ(as_json("\xE2\x80\xA8"), R"("\u2028")");
  EXPECT_EQ(as_json("\xFFz"), "\"\xEF\xBF\xBDz\"");
  EXPECT_EQ(as_json("\xF0\x9F\x98"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(as_json("\xF0\x9F\x98\x80"), "\"\xF0\x9F\x98\x80\"");
  for (int lead = 0; lead < 256; ++lead) {
    for (int next = 0; next < 256; ++next) {
      const std::string bytes{static_cast<char>(lead), static_cast<char>(next)};
      std::string list("[");
      list += as_json(bytes);
      list += ']';
      EXPECT_TRUE(parses(list)) << lead << ' ' << next;
    }
  }
}

TEST(json_out, separates_members_and_writes_impossible_numbers_as_null) {
  json_writer out;
  out.begin_object().key("a").begin_array().integer(1).number(0.5).end_array();
  out.key("b").number(1.0 / 0.0).key("c").boolean(true).key("d").begin_object().end_object().end_object();
  EXPECT_EQ(out.take(), R"({"a":[1,0.5],"b":null,"c":true,"d":{}})");
}

}  // namespace
}  // namespace tandem::net

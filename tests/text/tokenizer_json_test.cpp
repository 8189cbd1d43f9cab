#include <gtest/gtest.h>

#include "tests/text/golden_files.hpp"
#include "text/tokenizer.hpp"

namespace tandem::text {
namespace {

std::string tokenizer_file(const std::string& model_extra = "", const std::string& normalizer = "null",
                           const std::string& pre = "") {
  const std::string smollm = R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
                             R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]})";
  return R"({"added_tokens":[{"id":4,"content":"<s>","special":true},{"id":5,"content":"<t>","special":false}],)"
         R"("normalizer":)" +
         normalizer + R"(,"pre_tokenizer":)" + (pre.empty() ? smollm : pre) + R"(,"model":{"type":"BPE",)" +
         model_extra + R"("vocab":{"a":0,"b":1,"ab":2,"abab":3},"merges":["a b",["ab","ab"]]}})";
}

result<tokenizer_spec> parse(const std::string& json, const std::string& config = "",
                             const std::string& generation = "", const std::string& model = "",
                             const std::string& jinja = "") {
  return parse_tokenizer_json({json, config, generation, model, jinja});
}

void expect_refused(const result<tokenizer_spec>& parsed, error_code code, const std::string& word) {
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, code) << parsed.error().message;
  EXPECT_NE(parsed.error().message.find(word), std::string::npos) << parsed.error().message;
}

TEST(tokenizer_json, vocabulary_merges_and_added_tokens_are_read) {
  const auto spec = parse(tokenizer_file()).value();
  EXPECT_EQ(spec.pieces, (std::vector<std::string>{"a", "b", "ab", "abab", "<s>", "<t>"}));
  EXPECT_EQ(spec.kinds[4], token_kind::control);
  EXPECT_EQ(spec.kinds[5], token_kind::user_defined);
  ASSERT_EQ(spec.merges.size(), 2u);
  EXPECT_EQ(spec.merges[1], (std::pair<std::string, std::string>("ab", "ab")));
  EXPECT_EQ(spec.pre, pre_tokenizer::smollm);
  const auto words = tokenizer::make(spec).value();
  EXPECT_EQ(words->encode("ababab<s>", true, false).value(), (std::vector<token_id>{3, 2, 4}));
}

TEST(tokenizer_json, real_files_say_their_pre_tokenizer_and_normalizer) {
  const auto qwen2 = parse(read_golden("qwen2-tokenizer.json.gz")).value();
  EXPECT_EQ(qwen2.pre, pre_tokenizer::qwen2);
  EXPECT_TRUE(qwen2.normalize_nfc);
  const auto smollm2 = parse(read_golden("smollm2-tokenizer.json.gz")).value();
  EXPECT_EQ(smollm2.pre, pre_tokenizer::smollm);
  EXPECT_FALSE(smollm2.normalize_nfc);
}

TEST(tokenizer_json, named_tokens_and_end_tokens_come_from_every_place) {
  const auto spec =
      parse(tokenizer_file(),
            R"({"bos_token":"<s>","eos_token":{"content":"<t>"},"add_bos_token":true,"chat_template":"x"})",
            R"({"eos_token_id":[3,4]})", R"({"eos_token_id":2,"pad_token_id":null})")
          .value();
  EXPECT_EQ(spec.bos, 4);
  EXPECT_EQ(spec.eos, 5);
  EXPECT_TRUE(spec.add_bos);
  EXPECT_EQ(spec.end_tokens, (std::vector<token_id>{2, 3, 4, 5}));
  EXPECT_EQ(spec.chat_template, "x");
}

TEST(tokenizer_json, of_several_chat_templates_the_default_one_is_taken_and_a_file_beats_them) {
  const std::string config =
      R"({"chat_template":[{"name":"tool_use","template":"t"},{"name":"default","template":"d"}]})";
  EXPECT_EQ(parse(tokenizer_file(), config).value().chat_template, "d");
  EXPECT_EQ(parse(tokenizer_file(), config, "", "", "j").value().chat_template, "j");
}

TEST(tokenizer_json, E5_what_is_not_supported_is_refused_by_name) {
  expect_refused(parse(tokenizer_file("", R"({"type":"NFKC"})")), error_code::unsupported, "NFKC");
  expect_refused(parse(tokenizer_file("", "null", R"({"type":"Metaspace"})")), error_code::unsupported, "Metaspace");
  expect_refused(parse(tokenizer_file("", "null", "null")), error_code::unsupported, "pre-tokenizer");
  expect_refused(parse(tokenizer_file(R"("byte_fallback":true,)")), error_code::unsupported, "byte_fallback");
  expect_refused(parse(R"({"model":{"type":"Unigram"}})"), error_code::unsupported, "Unigram");
}

TEST(tokenizer_json, files_that_break_their_format_are_refused) {
  expect_refused(parse(""), error_code::corrupt, "tokenizer.json");
  expect_refused(parse("[1]"), error_code::corrupt, "object");
  expect_refused(parse(std::string(100, '[') + std::string(100, ']')), error_code::corrupt, "tokenizer.json");
  expect_refused(parse(tokenizer_file(), R"({"bos_token":"<none>"})"), error_code::corrupt, "<none>");
  expect_refused(parse(tokenizer_file(), "{"), error_code::corrupt, "tokenizer_config.json");
  std::string duplicate = tokenizer_file();
  duplicate.replace(duplicate.find("\"ab\":2"), 6, "\"ab\":1");
  expect_refused(parse(duplicate), error_code::corrupt, "id 1");
  std::string huge = tokenizer_file();
  huge.replace(huge.find("\"ab\":2"), 6, "\"ab\":99999999");
  expect_refused(parse(huge), error_code::corrupt, "99999999");
}

}  // namespace
}  // namespace tandem::text

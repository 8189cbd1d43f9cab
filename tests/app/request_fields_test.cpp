#include "app/request_fields.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace tandem::app {
namespace {

using nlohmann::json;

std::string problem_of(const char* text) {
  const auto request = read_request(json::parse(text));
  return request ? std::string{} : request.error().message;
}

TEST(request_fields, a_prompt_of_the_operator_may_contain_special_tokens) {
  const auto request = read_request(json::parse(R"({"prompt": "<|im_start|>x"})"));
  ASSERT_TRUE(request);
  const auto& prompt = std::get<prompt_text>(request->prompt);
  EXPECT_EQ(prompt.trusted, (std::vector<byte_range>{{0, prompt.text.size()}}));
}

TEST(request_fields, every_field_is_read) {
  const auto request = read_request(json::parse(
      R"({"messages": [{"role": "user", "content": "x"}], "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1,
          "seed": 18446744073709551615, "stop": ["a", "b"], "stop_token_ids": [1, 2], "max_tokens": 4.0, "min_tokens": 1,
          "n": 3, "logprobs": 2, "logit_bias": {"7": -1.5, "3": 2}, "ignore_eos": true, "timeout_ms": 10,
          "speculative": {"method": "ngram", "num_speculative_tokens": 3, "adaptive": false}, "top_a": 1, "seed2": null})"));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(std::holds_alternative<chat_prompt>(request->prompt));
  EXPECT_FLOAT_EQ(request->sampling.temperature, 0.5F);
  EXPECT_EQ(request->sampling.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(request->stopping.max_tokens, 4);
  EXPECT_EQ(request->sampling.logit_bias, (std::vector<std::pair<token_id, float>>{{3, 2.0F}, {7, -1.5F}}));
  EXPECT_EQ(request->speculation.method, draft_method::ngram);
  EXPECT_EQ(request->speculation.k, 3);
  EXPECT_FALSE(request->speculation.adaptive);
  EXPECT_EQ(request->timeout, std::chrono::milliseconds(10));
}

TEST(request_fields, numbers_are_numbers_and_whole_ones_are_whole) {
  for (const char* text : {R"({"prompt": "x", "max_tokens": "4"})", R"({"prompt": "x", "max_tokens": 4.5})",
                           R"({"prompt": "x", "max_tokens": 1e300})", R"({"prompt": "x", "max_tokens": 4294967296})"})
    EXPECT_NE(problem_of(text).find("max_tokens"), std::string::npos) << text;
  EXPECT_NE(problem_of(R"({"prompt": "x", "seed": 1.5})").find("seed"), std::string::npos);
  EXPECT_NE(problem_of(R"({"prompt": "x", "temperature": "hot"})").find("temperature"), std::string::npos);
  EXPECT_NE(problem_of(R"({"prompt": "x", "ignore_eos": 1})").find("ignore_eos"), std::string::npos);
  EXPECT_NE(problem_of(R"({"prompt": "x", "logit_bias": {"a": 1}})").find("logit_bias"), std::string::npos);
}

TEST(request_fields, null_means_absent) {
  EXPECT_NE(problem_of(R"({"prompt": "x", "allowed_token_ids": []})").find("allowed_token_ids"), std::string::npos);
  EXPECT_NE(problem_of(R"({"prompt": "x", "max_tokens": 3, "max_completion_tokens": 4})").find("max_completion_tokens"),
            std::string::npos);
  EXPECT_EQ(problem_of(R"({"prompt": "x", "max_tokens": 3, "max_completion_tokens": 3})"), "");
  EXPECT_EQ(read_request(json::parse(R"({"prompt": "x", "max_completion_tokens": 4})"))->stopping.max_tokens, 4);
  EXPECT_EQ(problem_of(R"({"prompt": "x", "max_tokens": null, "messages": null, "stop": null})"), "");
}

TEST(request_fields, exactly_one_prompt_is_wanted) {
  EXPECT_NE(problem_of("{}"), "");
  EXPECT_NE(problem_of(R"({"prompt": "x", "prompt_token_ids": [1]})"), "");
  EXPECT_NE(problem_of(R"({"prompt": 3})"), "");
  EXPECT_NE(problem_of(R"({"prompt_token_ids": [1, "2"]})"), "");
}

TEST(request_fields, flags_put_fields_under_their_own_names) {
  json fields;
  CLI::App command;
  add_sampling_flags(command, fields);
  command.parse("--max-tokens 3 --temperature 0 --stop x --stop y --ignore-eos --speculative false", false);
  EXPECT_EQ(fields, json::parse(R"({"max_tokens": 3, "temperature": 0.0, "stop": ["x", "y"], "ignore_eos": true,
                                    "speculative": false})"));
}

}  // namespace
}  // namespace tandem::app

#include "net/openai_requests.hpp"

#include <gtest/gtest.h>

#include <string>

#include "config/limits.hpp"

namespace tandem::net {
namespace {

request_facts facts() {
  request_facts known;
  known.model_names = {"m", "alias"};
  known.vocabulary = 1000;
  known.max_model_len = 2048;
  known.max_draft_tokens = 8;
  known.has_chat_template = true;
  return known;
}

result<api_request> completion(const std::string& fields) {
  return parse_completion(R"({"prompt":"p")" + (fields.empty() ? "" : "," + fields) + "}", {}, facts());
}

result<api_request> chat(const std::string& messages, const std::string& fields = {}) {
  return parse_chat(R"({"messages":)" + messages + (fields.empty() ? "" : "," + fields) + "}", {}, facts());
}

std::string messages_of(const result<api_request>& request) {
  return request ? std::get<chat_prompt>(request->prompts.front().prompt).messages_json : request.error().message;
}

const char* const kOptionalFields[] = {"model",
                                       "n",
                                       "best_of",
                                       "echo",
                                       "suffix",
                                       "logprobs",
                                       "stop",
                                       "logit_bias",
                                       "presence_penalty",
                                       "frequency_penalty",
                                       "seed",
                                       "stream",
                                       "stream_options",
                                       "max_tokens",
                                       "max_completion_tokens",
                                       "response_format",
                                       "user",
                                       "top_k",
                                       "top_p",
                                       "min_p",
                                       "temperature",
                                       "repetition_penalty",
                                       "min_tokens",
                                       "ignore_eos",
                                       "stop_token_ids",
                                       "include_stop_str_in_output",
                                       "skip_special_tokens",
                                       "bad_words",
                                       "allowed_token_ids",
                                       "prompt_logprobs",
                                       "return_token_ids",
                                       "priority",
                                       "structured_outputs",
                                       "cache_salt",
                                       "speculative",
                                       "timeout_ms",
                                       "include_timings",
                                       "use_beam_search",
                                       "add_special_tokens"};

TEST(openai_requests, D1_null_is_the_same_as_absent_for_every_field) {
  const auto plain = completion("");
  ASSERT_TRUE(plain);
  for (const std::string name : kOptionalFields) {
    const auto with_null = completion("\"" + name + "\":null");
    ASSERT_TRUE(with_null) << name << ": " << with_null.error().message;
    EXPECT_EQ(with_null->prompts.front().sampling.temperature, plain->prompts.front().sampling.temperature);
    EXPECT_EQ(with_null->prompts.front().stopping.max_tokens, plain->prompts.front().stopping.max_tokens);
  }
}

TEST(openai_requests, D1_unknown_fields_are_ignored) {
  EXPECT_TRUE(completion(R"("no_such_field":{"deep":[1,2]})"));
  EXPECT_TRUE(chat(R"([{"role":"user","content":"x","no_such_field":1}])"));
}

TEST(openai_requests, D1_content_may_be_text_parts_joined_in_order) {
  EXPECT_EQ(messages_of(chat(R"([{"role":"user","content":"x"}])")), R"([{"role":"user","content":"x"}])");
  EXPECT_EQ(messages_of(chat(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},
                              {"type":"text","text":"c"}]}])")),
            R"([{"role":"user","content":"abc"}])");
  EXPECT_EQ(messages_of(chat(R"([{"role":"user","content":[]}])")), R"([{"role":"user","content":""}])");
  EXPECT_EQ(messages_of(chat(R"([{"role":"assistant","content":null}])")), R"([{"role":"assistant","content":""}])");
  EXPECT_FALSE(chat(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"));
  EXPECT_FALSE(chat(R"([{"role":"user"}])"));
  EXPECT_FALSE(chat(R"([{"content":"x"}])"));
  EXPECT_FALSE(chat("[]"));
}

TEST(openai_requests, arguments_of_tool_calls_are_opened_for_the_template) {
  EXPECT_EQ(
      messages_of(chat(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 1}"}}]}])")),
      R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}])");
}

TEST(openai_requests, D1_both_names_of_the_token_limit_count_and_may_not_differ) {
  EXPECT_EQ(completion(R"("max_tokens":5)")->prompts.front().stopping.max_tokens, 5);
  EXPECT_EQ(completion(R"("max_completion_tokens":6)")->prompts.front().stopping.max_tokens, 6);
  EXPECT_TRUE(completion(R"("max_tokens":7,"max_completion_tokens":7)"));
  EXPECT_FALSE(completion(R"("max_tokens":7,"max_completion_tokens":8)"));
}

TEST(openai_requests, numbers_are_of_the_right_kind_and_in_range) {
  EXPECT_EQ(completion(R"("max_tokens":4.0)")->prompts.front().stopping.max_tokens, 4);
  const char* const wrong[] = {R"("max_tokens":"4")",
                               R"("max_tokens":4.5)",
                               R"("max_tokens":-1)",
                               R"("max_tokens":true)",
                               R"("max_tokens":9223372036854775808)",
                               R"("max_tokens":1e300)",
                               R"("temperature":-0.1)",
                               R"("temperature":"1")",
                               R"("temperature":1e300)",
                               R"("top_p":0)",
                               R"("top_p":1.01)",
                               R"("top_p":1e-300)",
                               R"("min_p":-1)",
                               R"("min_p":2)",
                               R"("top_k":-2)",
                               R"("n":0)",
                               R"("n":129)",
                               R"("presence_penalty":2.1)",
                               R"("frequency_penalty":-3)",
                               R"("repetition_penalty":0)",
                               R"("logprobs":21)",
                               R"("logprobs":true)",
                               R"("seed":1.5)",
                               R"("stream":1)",
                               R"("stop":1)",
                               R"("stop":[""])",
                               R"("stop":[1])",
                               R"("stop_token_ids":[1000])",
                               R"("stop_token_ids":[-1])",
                               R"("logit_bias":{"1000":1})",
                               R"("logit_bias":{"x":1})",
                               R"("logit_bias":{"1":101})",
                               R"("allowed_token_ids":[])",
                               R"("timeout_ms":0)",
                               R"("priority":1e12)",
                               R"("cache_salt":"")",
                               R"("min_tokens":5,"max_tokens":4)",
                               R"("stream_options":{"include_usage":true})"};
  for (const std::string fields : wrong) {
    const auto parsed = completion(fields);
    ASSERT_FALSE(parsed) << fields;
    EXPECT_EQ(parsed.error().code, error_code::invalid_argument) << fields;
    EXPECT_FALSE(parsed.error().param.empty()) << fields;
  }
}

TEST(openai_requests, D1_features_of_later_versions_are_refused_by_name) {
  for (const std::string fields : {R"("suffix":"x")", R"("speculative":{"method":"lookahead"})"}) {
    const auto parsed = completion(fields);
    ASSERT_FALSE(parsed) << fields;
    EXPECT_EQ(parsed.error().code, error_code::unsupported) << fields;
  }
  EXPECT_TRUE(completion(R"("response_format":{"type":"text"},"use_beam_search":false)"));
}

TEST(openai_requests, beam_search_has_three_fields) {
  EXPECT_FALSE(completion(R"("use_beam_search":false,"length_penalty":2)")->prompts.front().beams);
  const auto plain = completion(R"("use_beam_search":true,"n":3)")->prompts.front();
  EXPECT_EQ(plain.beams->length_penalty, 1.0F);
  EXPECT_FALSE(plain.beams->early_stopping);
  const auto chosen =
      completion(R"("use_beam_search":true,"length_penalty":-0.5,"early_stopping":true)")->prompts.front();
  EXPECT_EQ(chosen.beams->length_penalty, -0.5F);
  EXPECT_TRUE(chosen.beams->early_stopping);
  EXPECT_FALSE(completion(R"("use_beam_search":true,"early_stopping":"never")")->prompts.front().beams->early_stopping);
  EXPECT_EQ(completion(R"("use_beam_search":1)").error().param, "use_beam_search");
  EXPECT_EQ(completion(R"("early_stopping":"soon")").error().param, "early_stopping");
  EXPECT_EQ(completion(R"("length_penalty":"x")").error().param, "length_penalty");
}

TEST(openai_requests, bad_words_are_strings) {
  EXPECT_EQ(completion(R"("bad_words":["a"," b"])")->prompts.front().bad_words, (std::vector<std::string>{"a", " b"}));
  EXPECT_TRUE(completion(R"("bad_words":[])")->prompts.front().bad_words.empty());
  const std::string long_word(limits::kMaxBadWordBytes + 1, 'x');
  std::string too_many;
  for (std::size_t i = 0; i < limits::kMaxBadWords; ++i) too_many += "\"a\",";
  for (const std::string& words : {std::string(R"("a")"), std::string(R"([""])"), std::string("[1]"),
                                   "[\"" + long_word + "\"]", "[" + too_many + "\"a\"]"}) {
    const auto parsed = completion("\"bad_words\":" + words);
    ASSERT_FALSE(parsed) << words;
    EXPECT_EQ(parsed.error().param, "bad_words") << words;
  }
}

TEST(openai_requests, best_of_is_at_least_n_and_not_streamed) {
  EXPECT_EQ(completion(R"("best_of":3,"n":2)")->prompts.front().best_of, 3);
  EXPECT_EQ(completion(R"("best_of":3,"n":2)")->n, 2);
  EXPECT_TRUE(completion(R"("best_of":2,"n":2,"stream":true)"));
  for (const std::string fields : {R"("best_of":1,"n":2)", R"("best_of":0)", R"("best_of":129)", R"("best_of":"3")",
                                   R"("best_of":3,"stream":true)"}) {
    const auto parsed = completion(fields);
    ASSERT_FALSE(parsed) << fields;
    EXPECT_EQ(parsed.error().param, "best_of") << fields;
  }
}

TEST(openai_requests, prompts_come_in_four_shapes) {
  EXPECT_EQ(parse_completion(R"({"prompt":["a","b"]})", {}, facts())->prompts.size(), 2u);
  EXPECT_EQ(parse_completion(R"({"prompt":[1,2.0,3]})", {}, facts())->prompts.size(), 1u);
  EXPECT_EQ(parse_completion(R"({"prompt":[[1,2],[3]]})", {}, facts())->prompts.size(), 2u);
  for (const std::string prompt : {"[]", "[[]]", "[\"a\",1]", "[1,\"a\"]", "[[1],\"a\"]", "1", "{}", "[1000]", "[-1]",
                                   "[1.5]", "[[1],[1000]]", "null"}) {
    EXPECT_FALSE(parse_completion(R"({"prompt":)" + prompt + "}", {}, facts())) << prompt;
  }
  EXPECT_FALSE(parse_completion("{}", {}, facts()));
  EXPECT_FALSE(parse_completion("[]", {}, facts()));
}

TEST(openai_requests, D7_the_model_must_be_one_that_is_served) {
  EXPECT_EQ(completion("")->model, "m");
  EXPECT_EQ(completion(R"("model":"alias")")->model, "alias");
  for (const std::string name : {" m", "m ", "M", "", "other"}) {
    const auto parsed = completion("\"model\":\"" + name + "\"");
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, error_code::not_found);
    EXPECT_EQ(parsed.error().param, "model");
  }
}

TEST(openai_requests, speculation_is_chosen_per_request) {
  const auto off = completion(R"("speculative":false)");
  EXPECT_EQ(off->prompts.front().speculation.method, draft_method::none);
  const auto exact = completion(R"("speculative":{"method":"ngram","num_speculative_tokens":4,"adaptive":false})");
  EXPECT_EQ(exact->prompts.front().speculation.method, draft_method::ngram);
  EXPECT_EQ(exact->prompts.front().speculation.k, 4);
  EXPECT_FALSE(exact->prompts.front().speculation.adaptive);
  EXPECT_FALSE(completion(R"("speculative":{"num_speculative_tokens":9})"));
  EXPECT_FALSE(completion(R"("speculative":"ngram")"));
  auto no_draft = facts();
  no_draft.drafters = {true, true};
  const auto refused = parse_completion(R"({"prompt":"p","speculative":{"method":"draft_model"}})", {}, no_draft);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
  EXPECT_NE(refused.error().message.find("auto, none, ngram."), std::string::npos) << refused.error().message;
}

TEST(openai_requests, the_smaller_of_two_deadlines_counts) {
  const auto both = parse_completion(R"({"prompt":"p","timeout_ms":500})", "200", facts());
  EXPECT_EQ(both->prompts.front().timeout, std::chrono::milliseconds(200));
  EXPECT_FALSE(parse_completion(R"({"prompt":"p"})", "soon", facts()));
}

TEST(openai_requests, max_tokens_zero_scores_a_prompt_only) {
  EXPECT_FALSE(completion(R"("max_tokens":0)"));
  EXPECT_TRUE(completion(R"("max_tokens":0,"echo":true,"logprobs":1)"));
  EXPECT_TRUE(completion(R"("max_tokens":0,"prompt_logprobs":1)"));
}

TEST(openai_requests, every_way_in_takes_both_kinds_of_logprobs_streamed_or_not) {
  const std::string asked = R"("prompt":"x","logprobs":2,"prompt_logprobs":0,"max_tokens":1})";
  for (const std::string stream : {"", R"("stream":true,)"}) {
    for (const auto parse : {parse_generate, parse_completion}) {
      const auto call = parse("{" + stream + asked, "", facts());
      ASSERT_TRUE(call) << call.error().message;
      EXPECT_TRUE(call->logprobs && call->prompt_logprobs);
      EXPECT_EQ(call->prompts.front().logprobs.top, 2);
      EXPECT_EQ(call->prompts.front().logprobs.prompt_top, 0);
    }
  }
  const auto frame = parse_frame(R"({"id":1,)" + asked, facts());
  ASSERT_TRUE(frame && frame->request);
  EXPECT_TRUE(frame->request->logprobs && frame->request->prompt_logprobs);
  EXPECT_FALSE(parse_frame(R"({"id":1,"prompt":"x","logprobs":true})", facts())->request);
}

TEST(openai_requests, frames_carry_an_id_of_the_client) {
  const auto frame = parse_frame(R"({"id":7,"prompt":"x","temperature":0})", facts());
  ASSERT_TRUE(frame && frame->request);
  EXPECT_EQ(frame->id_json, "7");
  EXPECT_TRUE(parse_frame(R"({"id":"a","cancel":true})", facts())->cancel);
  EXPECT_FALSE(parse_frame(R"({"prompt":"x"})", facts()));
  EXPECT_FALSE(parse_frame(R"({"id":[1],"prompt":"x"})", facts()));
  EXPECT_FALSE(parse_frame(R"({"id":1,"prompt":"x","temperature":-1})", facts())->request);
}

}  // namespace
}  // namespace tandem::net

#include "net/openai_answers.hpp"

#include <gtest/gtest.h>

#include <string>

#include "net/answer_parts.hpp"

namespace tandem::net {
namespace {

answer_context context() {
  static const std::string kPieces[] = {"a", "b", "\xE2\x82", "\xAC"};
  return {"id-1",
          1234,
          {[](token_id id) { return std::string_view(kPieces[id]); },
           [](std::span<const token_id> ids) { return std::string(ids.size(), 'p'); }}};
}

answer_format format(api_shape shape, std::int32_t n = 1) {
  answer_format wanted;
  wanted.shape = shape;
  wanted.prompt_count = 1;
  wanted.prompt_texts = {"ask:"};
  wanted.model = "m";
  wanted.n = n;
  return wanted;
}

generation_event event(std::string text, std::vector<token_id> tokens, bool ends = false, std::int32_t choice = 0) {
  generation_event made;
  made.choice = choice;
  made.text = std::move(text);
  made.tokens = std::move(tokens);
  for (const token_id token : made.tokens) made.logprobs.push_back({token, -0.25F, 1, {{token, -0.25F}, {3, -2.0F}}});
  if (!ends) return made;
  made.end = finish{};
  made.stats.completion_tokens = 3;
  made.stats.cached_tokens = 1;
  made.stats.steps = 2;
  made.stats.draft_tokens = 4;
  made.stats.accepted_tokens = 1;
  sequence_stats::drafting& ngram = made.stats.by_method[static_cast<std::size_t>(draft_method::ngram)];
  ngram.runs = 1;
  ngram.draft_tokens = 4;
  ngram.accepted_tokens = 1;
  ngram.accepted_at[0] = 1;
  return made;
}

std::shared_ptr<const std::vector<token_id>> prompt() {
  return std::make_shared<const std::vector<token_id>>(std::vector<token_id>{0, 1, 0});
}

std::string whole(answer_format wanted) {
  const auto answer = make_answer(wanted, context());
  std::string none;
  answer->accept(0, prompt());
  answer->append(0, event("x", {0}), none);
  answer->append(0, event("y", {2, 3}, true), none);
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(answer->complete());
  return answer->whole();
}

TEST(openai_answers, usage_and_timings_follow_their_definitions) {
  auto wanted = format(api_shape::completion);
  wanted.include_timings = true;
  const std::string text = whole(wanted);
  EXPECT_NE(text.find(R"("usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6,)"
                      R"("prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":)"
                      R"({"accepted_prediction_tokens":1,"rejected_prediction_tokens":3}})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("draft_n":4,"draft_n_accepted":1,"steps":2,"mean_accepted_length":1.5,)"
                      R"("spec_token_acceptance_rate":0.25,)"
                      R"("by_method":{"ngram":{"runs":1,"draft_n":4,"draft_n_accepted":1,"accepted_at":[1]}})"),
            std::string::npos)
      << text;
}

TEST(openai_answers, timings_by_method_are_summed_over_the_choices_and_empty_without_drafts) {
  call_counts counts;
  json_writer none;
  write_timings(none, counts);
  const std::string without_drafts = none.take();
  EXPECT_NE(without_drafts.find(R"("by_method":{}})"), std::string::npos) << without_drafts;
  sequence_stats stats;
  sequence_stats::drafting& model = stats.by_method[static_cast<std::size_t>(draft_method::draft_model)];
  model = {.runs = 2, .draft_tokens = 6, .accepted_tokens = 3};
  model.accepted_at[0] = 2;
  model.accepted_at[1] = 1;
  counts.add(stats);
  counts.add(stats);
  json_writer some;
  write_timings(some, counts);
  const std::string with_drafts = some.take();
  EXPECT_NE(with_drafts.find(R"("by_method":{"draft_model":{"runs":4,"draft_n":12,"draft_n_accepted":6,)"
                             R"("accepted_at":[4,2]}})"),
            std::string::npos)
      << with_drafts;
}

TEST(openai_answers, completions_logprobs_keep_tokens_that_are_part_of_a_character_apart) {
  auto wanted = format(api_shape::completion);
  wanted.logprobs = true;
  const std::string text = whole(wanted);
  EXPECT_NE(text.find(R"("tokens":["a","bytes:\\xe2\\x82","bytes:\\xac"])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("text_offset":[0,1,2])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("token_logprobs":[-0.25,-0.25,-0.25])"), std::string::npos) << text;
}

TEST(openai_answers, chat_logprobs_carry_raw_bytes) {
  auto wanted = format(api_shape::chat);
  wanted.logprobs = true;
  const std::string text = whole(wanted);
  EXPECT_NE(text.find(R"("bytes":[226,130])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("message":{"role":"assistant","content":"xy"})"), std::string::npos) << text;
}

TEST(openai_answers, echo_puts_the_prompt_first_with_its_logprobs) {
  auto wanted = format(api_shape::completion);
  wanted.echo = true;
  wanted.logprobs = true;
  const auto answer = make_answer(wanted, context());
  std::string none;
  answer->accept(0, prompt());
  auto last = event("x", {0}, true);
  last.prompt_logprobs = {{1, -1.0F, 2, {{1, -1.0F}}}, {0, -2.0F, 3, {{0, -2.0F}}}};
  answer->append(0, last, none);
  const std::string text = answer->whole();
  EXPECT_NE(text.find(R"("text":"ask:x")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("token_logprobs":[null,-1,-2,-0.25])"), std::string::npos) << text;
}

TEST(openai_answers, C4_a_stream_has_one_role_one_finish_per_choice_and_usage_only_when_asked) {
  for (const bool usage : {false, true}) {
    auto wanted = format(api_shape::chat, 3);
    wanted.stream = true;
    wanted.include_usage = usage;
    const auto answer = make_answer(wanted, context());
    answer->accept(0, prompt());
    std::string bytes = answer->begin();
    for (int choice = 0; choice < 3; ++choice)
      answer->append(0, event("data: \n\n\xE2\x80\xA8", {0}, false, choice), bytes);
    for (int choice = 0; choice < 3; ++choice) answer->append(0, event("", {}, true, choice), bytes);
    bytes += answer->finish();
    std::size_t roles = 0;
    std::size_t finishes = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = bytes.find("\n\n", at);
      ASSERT_NE(end, std::string::npos);
      const std::string line = bytes.substr(at, end - at);
      ASSERT_TRUE(line.starts_with("data: ")) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos);
      roles += line.find("\"role\"") != std::string::npos;
      finishes += line.find(R"("finish_reason":"stop")") != std::string::npos;
      at = end + 2;
    }
    EXPECT_EQ(roles, 3u);
    EXPECT_EQ(finishes, 3u);
    EXPECT_EQ(bytes.find(R"("choices":[],"usage":{)") != std::string::npos, usage);
    EXPECT_TRUE(bytes.ends_with("data: [DONE]\n\n"));
  }
}

TEST(openai_answers, generate_streams_cumulative_text) {
  auto wanted = format(api_shape::generate);
  wanted.stream = true;
  const auto answer = make_answer(wanted, context());
  answer->accept(0, prompt());
  std::string bytes;
  answer->append(0, event("x", {0}), bytes);
  bytes += answer->flush();
  answer->append(0, event("y", {0}, true), bytes);
  bytes += answer->finish();
  EXPECT_EQ(bytes, "{\"text\":[\"ask:x\"]}\n{\"text\":[\"ask:xy\"]}\n");
}

generation_event part_of_prompt(token_id token, float logprob, std::int32_t choice = 0) {
  generation_event made;
  made.choice = choice;
  made.prompt_logprobs = {{token, logprob, 1, {{token, logprob}}}};
  return made;
}

std::string entry(token_id token, const std::string& logprob, const std::string& text) {
  return "{\"" + std::to_string(token) + "\":{\"logprob\":" + logprob + ",\"rank\":1,\"decoded_token\":\"" + text +
         "\"}}";
}

// What an answer of this shape streams of the prompt [0, 1, 0], which is scored in two parts, and of one token.
std::vector<std::string> prompt_parts(api_shape shape) {
  auto wanted = format(shape);
  wanted.stream = true;
  wanted.prompt_logprobs = true;
  const auto answer =
      shape == api_shape::frame ? make_frame_answer(wanted, context(), "7") : make_answer(wanted, context());
  answer->accept(0, prompt());
  std::string bytes = answer->begin();
  for (const auto& each : {part_of_prompt(1, -1), part_of_prompt(0, -2), event("x", {0}), event("", {}, true)}) {
    answer->append(0, each, bytes);
    bytes += answer->flush();
  }
  const std::string mark = R"("prompt_logprobs":)";
  std::vector<std::string> parts;
  for (std::size_t at = bytes.find(mark); at != std::string::npos; at = bytes.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    std::size_t depth = 0;
    std::size_t end = begin;
    do {
      depth += bytes[end] == '[';
      depth -= bytes[end] == ']';
    } while (depth > 0 && ++end < bytes.size());
    parts.push_back(bytes.substr(begin, end + 1 - begin));
  }
  return parts;
}

TEST(openai_answers, streams_have_the_prompts_logprobs_in_parts) {
  const std::string first = "[null," + entry(1, "-1", "b") + "]";
  const std::string second = "[" + entry(0, "-2", "a") + "]";
  for (const api_shape shape : {api_shape::completion, api_shape::chat, api_shape::frame})
    EXPECT_EQ(prompt_parts(shape), (std::vector<std::string>{first, second})) << static_cast<int>(shape);
  EXPECT_EQ(prompt_parts(api_shape::generate),
            (std::vector<std::string>{"[" + first + "]", "[" + second + "]", "[[]]", "[[]]"}));
}

TEST(openai_answers, a_stream_says_of_a_prompt_of_one_token_that_nothing_came_before_it) {
  auto wanted = format(api_shape::completion, 2);
  wanted.stream = true;
  wanted.prompt_logprobs = true;
  const auto answer = make_answer(wanted, context());
  answer->accept(0, prompt());
  std::string bytes;
  for (const std::int32_t choice : {0, 1}) {
    std::string told;
    answer->append(0, event("x", {0}, false, choice), told);
    EXPECT_NE(told.find(R"("prompt_logprobs":[null])"), std::string::npos) << told;
    answer->append(0, event("", {}, true, choice), bytes);
  }
  EXPECT_EQ(bytes.find("prompt_logprobs"), std::string::npos) << bytes;
}

TEST(openai_answers, generate_and_frames_have_logprobs_by_token_id) {
  const std::string x = R"({"0":{"logprob":-0.25,"rank":1,"decoded_token":"a"},)"
                        R"("3":{"logprob":-2,"rank":2,"decoded_token":")"
                        "\xEF\xBF\xBD\"}}";
  auto wanted = format(api_shape::generate, 2);
  wanted.logprobs = true;
  wanted.stream = true;
  const auto answer = make_answer(wanted, context());
  answer->accept(0, prompt());
  std::string bytes;
  answer->append(0, event("x", {0}), bytes);
  EXPECT_EQ(answer->flush(), R"({"text":["ask:x","ask:"],"logprobs":[[)" + x + "],[]]}\n");
  answer->append(0, event("y", {0}, true, 1), bytes);
  EXPECT_EQ(answer->flush(), R"({"text":["ask:x","ask:y"],"logprobs":[[],[)" + x + "]]}\n");
  auto framed = format(api_shape::frame);
  framed.logprobs = true;
  framed.stream = true;
  const auto frames = make_frame_answer(framed, context(), "7");
  frames->accept(0, prompt());
  frames->append(0, event("x", {0}), bytes);
  EXPECT_EQ(bytes, R"({"id":7,"text":"x","token_ids":[0],"logprobs":[)" + x + "]}\n");
}

TEST(openai_answers, a_deadline_before_the_first_token_is_a_failure_of_a_whole_answer) {
  const auto answer = make_answer(format(api_shape::completion), context());
  std::string none;
  answer->accept(0, prompt());
  generation_event end;
  end.end = finish{};
  end.end->reason = finish_reason::timeout;
  answer->append(0, end, none);
  ASSERT_TRUE(answer->failure());
  EXPECT_EQ(error_response(*answer->failure()).status, 408u);
}

TEST(openai_answers, D7_errors_have_one_shape) {
  EXPECT_EQ(error_json(error{error_code::not_found, "No \xFF model.", "model"}),
            "{\"error\":{\"message\":\"No \xEF\xBF\xBD model.\",\"type\":\"invalid_request_error\",\"param\":\"model\","
            "\"code\":\"model_not_found\"}}");
  const auto busy = error_response(error{error_code::overloaded, "Full.", {}});
  EXPECT_EQ(busy.status, 429u);
  EXPECT_EQ(busy.headers.front().first, "Retry-After");
}

}  // namespace
}  // namespace tandem::net

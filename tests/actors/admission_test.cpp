#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "actors/admission_desk.hpp"
#include "config/limits.hpp"

namespace tandem {
namespace {

request_bounds bounds() {
  request_bounds all;
  all.max_model_len = 32;
  all.vocabulary_size = 50;
  all.kv_tokens = 24;
  all.max_num_batched_tokens = 16;
  all.max_draft_tokens = 4;
  all.methods = {false, true, false};
  all.end_tokens = {3, 9};
  return all;
}

generation_request request(std::optional<std::int32_t> max_tokens = 4) {
  generation_request wanted;
  wanted.stopping.max_tokens = max_tokens;
  return wanted;
}

std::vector<token_id> prompt(std::size_t length) {
  return std::vector<token_id>(length, 1);
}

TEST(RequestRules, EveryFieldOutOfItsBoundIsRefusedByName) {
  using change = std::function<void(generation_request&)>;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<std::string, change>> cases = {
      {"temperature", [](auto& r) { r.sampling.temperature = -0.1F; }},
      {"temperature", [&](auto& r) { r.sampling.temperature = nan; }},
      {"top_k", [](auto& r) { r.sampling.top_k = -1; }},
      {"top_p", [](auto& r) { r.sampling.top_p = 0; }},
      {"top_p", [](auto& r) { r.sampling.top_p = 1.5F; }},
      {"top_p", [&](auto& r) { r.sampling.top_p = nan; }},
      {"min_p", [](auto& r) { r.sampling.min_p = 1.1F; }},
      {"repetition_penalty", [](auto& r) { r.sampling.repetition_penalty = 0; }},
      {"presence_penalty", [](auto& r) { r.sampling.presence_penalty = 2.5F; }},
      {"frequency_penalty", [](auto& r) { r.sampling.frequency_penalty = -2.5F; }},
      {"logit_bias",
       [](auto& r) {
         r.sampling.logit_bias = {{50, 1.0F}};
       }},
      {"logit_bias",
       [](auto& r) {
         r.sampling.logit_bias = {{5, 101.0F}};
       }},
      {"logit_bias",
       [](auto& r) {
         r.sampling.logit_bias = {{5, 1.0F}, {5, 2.0F}};
       }},
      {"allowed_token_ids", [](auto& r) { r.sampling.allowed_token_ids = {-1}; }},
      {"min_tokens", [](auto& r) { r.sampling.min_tokens = -1; }},
      {"best_of", [](auto& r) { r.best_of = limits::kMaxChoices + 1; }},
      {"best_of", [](auto& r) { r.n = 3, r.best_of = 2; }},
      {"bad_words", [](auto& r) { r.bad_words = {""}; }},
      {"bad_words", [](auto& r) { r.bad_words.assign(limits::kMaxBadWords + 1, "x"); }},
      {"bad_words", [](auto& r) { r.bad_words = {std::string(limits::kMaxBadWordBytes + 1, 'x')}; }},
      {"stop", [](auto& r) { r.stopping.stop = {""}; }},
      {"stop", [](auto& r) { r.stopping.stop.assign(limits::kMaxStopStrings + 1, "x"); }},
      {"stop", [](auto& r) { r.stopping.stop = {std::string(limits::kMaxStopStringBytes + 1, 'x')}; }},
      {"stop_token_ids", [](auto& r) { r.stopping.stop_token_ids = {50}; }},
      {"max_tokens", [](auto& r) { r.stopping.max_tokens = -1; }},
      {"max_tokens", [](auto& r) { r.stopping.max_tokens = 0; }},
      {"logprobs", [](auto& r) { r.logprobs.top = limits::kMaxLogprobs + 1; }},
      {"prompt_logprobs", [](auto& r) { r.logprobs.prompt_top = -2; }},
      {"n", [](auto& r) { r.n = 0; }},
      {"n", [](auto& r) { r.n = limits::kMaxChoices + 1; }},
      {"num_speculative_tokens", [](auto& r) { r.speculation.k = 5; }},
      {"speculative", [](auto& r) { r.speculation.method = draft_method::draft_model; }},
      {"timeout_ms", [](auto& r) { r.timeout = std::chrono::milliseconds(0); }},
      {"timeout_ms", [](auto& r) { r.timeout = std::chrono::milliseconds::max(); }},
  };
  for (const auto& [param, spoil] : cases) {
    auto wanted = request();
    spoil(wanted);
    const auto got = check_request(wanted, bounds());
    ASSERT_FALSE(got.has_value()) << param;
    EXPECT_EQ(got.error().code, error_code::invalid_argument);
    EXPECT_EQ(got.error().param, param);
  }
  EXPECT_TRUE(check_request(request(), bounds()).has_value());
}

TEST(RequestRules, AMethodThatIsNotThereIsAnsweredWithThoseThatAre) {
  auto wanted = request();
  wanted.speculation.method = draft_method::draft_model;
  const auto got = check_request(wanted, bounds());
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().message, "This server does not draft with the method draft_model; it has auto, none, ngram.");
}

TEST(RequestRules, B2_TheMessageNamesTheThreeNumbers) {
  auto wide = bounds();
  wide.kv_tokens = 1000;
  for (std::size_t length : {30, 31, 32, 33}) {
    for (std::int32_t max_tokens : {1, 2, 32}) {
      const auto got = resolve_request(request(max_tokens), prompt(length), wide, 1);
      const bool fits = length + static_cast<std::size_t>(max_tokens) <= 32;
      ASSERT_EQ(got.has_value(), fits) << length << "+" << max_tokens;
      if (fits) continue;
      for (const auto number : {length, static_cast<std::size_t>(max_tokens), std::size_t{32}})
        EXPECT_NE(got.error().message.find(std::to_string(number)), std::string::npos) << got.error().message;
    }
  }
  EXPECT_EQ(resolve_request(request(std::nullopt), prompt(31), wide, 1)->max_tokens, 1);
  EXPECT_FALSE(resolve_request(request(std::nullopt), prompt(32), wide, 1).has_value());
  EXPECT_EQ(resolve_request(request(std::nullopt), prompt(10), wide, 1)->max_tokens, 22);
}

TEST(RequestRules, B1_WhatCanNeverFitIsRefusedAtOnce) {
  EXPECT_TRUE(resolve_request(request(1), prompt(24), bounds(), 1).has_value());
  const auto too_long = resolve_request(request(1), prompt(25), bounds(), 1);
  ASSERT_FALSE(too_long.has_value());
  EXPECT_NE(too_long.error().message.find("24"), std::string::npos);
  EXPECT_FALSE(resolve_request(request(6), prompt(20), bounds(), 1).has_value());
  EXPECT_TRUE(resolve_request(request(5), prompt(20), bounds(), 1).has_value());
  EXPECT_EQ(resolve_request(request(std::nullopt), prompt(20), bounds(), 1)->max_tokens, 5);
  auto whole = bounds();
  whole.chunked_prefill = false;
  EXPECT_TRUE(resolve_request(request(1), prompt(16), whole, 1).has_value());
  EXPECT_FALSE(resolve_request(request(1), prompt(17), whole, 1).has_value());
}

TEST(RequestRules, AnEmptyPromptAndForeignIdsAreRefused) {
  EXPECT_EQ(resolve_request(request(), {}, bounds(), 1).error().param, "prompt");
  const std::vector<token_id> foreign{1, 50};
  EXPECT_EQ(resolve_request(request(), foreign, bounds(), 1).error().param, "prompt");
}

TEST(RequestRules, SeedsAndHeldTokensAreResolved) {
  auto wanted = request(8);
  wanted.sampling.min_tokens = 2;
  wanted.stopping.stop_token_ids = {7, 3};
  const auto drawn = resolve_request(wanted, prompt(2), bounds(), 77);
  EXPECT_EQ(drawn->seed, 77u);
  EXPECT_EQ(drawn->sampling->held_until_min_tokens, (std::vector<token_id>{3, 7, 9}));
  wanted.sampling.seed = 5;
  EXPECT_EQ(resolve_request(wanted, prompt(2), bounds(), 77)->seed, 5u);
  wanted.sampling.min_tokens = 9;
  EXPECT_EQ(resolve_request(wanted, prompt(2), bounds(), 77).error().param, "min_tokens");
  wanted.sampling.min_tokens = 1;
  wanted.sampling.allowed_token_ids = {9, 7};
  EXPECT_EQ(resolve_request(wanted, prompt(2), bounds(), 77).error().param, "allowed_token_ids");
}

TEST(RequestRules, BeamsRefuseWhatTheyDoNotSearchWith) {
  const std::vector<std::pair<std::string, std::function<void(generation_request&)>>> cases = {
      {"repetition_penalty", [](auto& r) { r.sampling.repetition_penalty = 1.1F; }},
      {"logit_bias",
       [](auto& r) {
         r.sampling.logit_bias = {{1, 1.0F}};
       }},
      {"allowed_token_ids", [](auto& r) { r.sampling.allowed_token_ids = {1}; }},
      {"min_tokens", [](auto& r) { r.sampling.min_tokens = 1; }},
      {"bad_words", [](auto& r) { r.bad_words = {"x"}; }},
      {"stop", [](auto& r) { r.stopping.stop = {"x"}; }},
      {"stop_token_ids", [](auto& r) { r.stopping.stop_token_ids = {1}; }},
      {"prompt_logprobs", [](auto& r) { r.logprobs.prompt_top = 0; }},
      {"best_of", [](auto& r) { r.best_of = 9; }},
      {"length_penalty", [](auto& r) { r.beams->length_penalty = 11; }},
      {"n", [](auto& r) { r.n = 5; }},
  };
  auto wide = bounds();
  wide.max_num_seqs = 4;
  for (const auto& [param, spoil] : cases) {
    auto wanted = request();
    wanted.beams.emplace();
    EXPECT_TRUE(check_request(wanted, wide));
    spoil(wanted);
    const auto got = check_request(wanted, wide);
    ASSERT_FALSE(got.has_value()) << param;
    EXPECT_EQ(got.error().param, param);
  }
}

/// 24 positions in blocks of 4: a prompt of 9 shares two blocks, four more are for the beams.
TEST(RequestRules, B1_BeamsMustFitBesideEachOther) {
  auto blocks = bounds();
  blocks.block_size = 4;
  blocks.max_num_seqs = 4;
  auto wanted = request(8);
  wanted.beams.emplace();
  wanted.n = 2;
  EXPECT_EQ(resolve_request(wanted, prompt(9), blocks, 1)->max_tokens, 8);
  wanted.stopping.max_tokens = 9;
  EXPECT_EQ(resolve_request(wanted, prompt(9), blocks, 1).error().param, "max_tokens");
  wanted.stopping.max_tokens.reset();
  EXPECT_EQ(resolve_request(wanted, prompt(9), blocks, 1)->max_tokens, 8);
  wanted.n = 4;
  EXPECT_EQ(resolve_request(wanted, prompt(9), blocks, 1)->max_tokens, 4);
  EXPECT_FALSE(resolve_request(wanted, prompt(21), blocks, 1));
}

TEST(RequestRules, ABadWordMayHaveAsManyTokensAsItsBoundSays) {
  const auto word = [](std::size_t tokens) { return std::vector{std::vector<token_id>(tokens, 1)}; };
  EXPECT_TRUE(resolve_request(request(), prompt(2), bounds(), 1, word(limits::kMaxBadWordTokens)));
  const auto got = resolve_request(request(), prompt(2), bounds(), 1, word(limits::kMaxBadWordTokens + 1));
  EXPECT_EQ(got.error().message, "A bad word may have at most 1024 tokens, but one has 1025.");
}

TEST(RequestRules, BadWordsBecomeTokenSequencesOfTheSampling) {
  const auto got = resolve_request(request(), prompt(2), bounds(), 1, {{3, 4}, {5}});
  EXPECT_EQ(got->sampling->bad_words, (std::vector<std::vector<token_id>>{{3, 4}, {5}}));
  EXPECT_EQ(resolve_request(request(), prompt(2), bounds(), 1, {{50}}).error().param, "bad_words");
}

class silent_outlet final : public outlet {
 public:
  void answer(submission_answer) override {}
  void post(std::vector<generation_event>) override {}
};

submit_generation submission(std::uint64_t id, std::int32_t n = 1) {
  auto wanted = request();
  wanted.n = n;
  return {{id}, std::make_shared<const generation_request>(wanted), std::make_shared<silent_outlet>(), {}};
}

TEST(AdmissionDesk, CreditsComeBackWhenEveryChoiceIsRetiredAndTold) {
  admission_desk desk({bounds(), 2, 1000, 0});
  std::size_t forgotten = 0;
  desk.on_forgotten = [&](std::size_t count) { forgotten += count; };
  ASSERT_TRUE(desk.open(submission(1, 2)));
  ASSERT_TRUE(desk.open(submission(2)));
  EXPECT_EQ(desk.open(submission(3)).error().code, error_code::overloaded);
  ASSERT_TRUE(desk.take_prompt({1}, prompt(3)));
  ASSERT_EQ(desk.admit({1}).sequences.size(), 2u);
  desk.retire({{1}, 0});
  EXPECT_TRUE(desk.end({{1}, 0}));
  EXPECT_FALSE(desk.end({{1}, 0}));
  EXPECT_TRUE(desk.end({{1}, 1}));
  EXPECT_EQ(forgotten, 0u);
  desk.retire({{1}, 1});
  EXPECT_EQ(forgotten, 1u);
  EXPECT_TRUE(desk.open(submission(3)));
}

TEST(AdmissionDesk, ChoicesThatAreNotShownHaveNoStreamAndCreditsComeBackAllTheSame) {
  admission_desk desk({bounds(), 2, 1000, 0});
  auto wanted = request();
  wanted.n = 2;
  wanted.best_of = 4;
  ASSERT_TRUE(
      desk.open({{1}, std::make_shared<const generation_request>(wanted), std::make_shared<silent_outlet>(), {}}));
  ASSERT_TRUE(desk.take_prompt({1}, prompt(3)));
  const auto admission = desk.admit({1});
  EXPECT_EQ(admission.sequences.size(), 4u);
  EXPECT_EQ(admission.streams.size(), 2u);
  EXPECT_EQ(desk.unended({1}).size(), 2u);
  for (std::int32_t choice = 0; choice < 4; ++choice) desk.retire({{1}, choice});
  EXPECT_TRUE(desk.end({{1}, 0}));
  EXPECT_TRUE(desk.live({1}));
  EXPECT_TRUE(desk.end({{1}, 1}));
  EXPECT_FALSE(desk.live({1}));
}

TEST(AdmissionDesk, PromptTokensAreBoundedButAnIdleServerTakesOne) {
  admission_desk desk({bounds(), 9, 10, 0});
  ASSERT_TRUE(desk.open(submission(1)));
  ASSERT_TRUE(desk.open(submission(2)));
  EXPECT_TRUE(desk.take_prompt({1}, prompt(12)));  // counts while its grammar is compiled
  EXPECT_EQ(desk.take_prompt({2}, prompt(1)).error().code, error_code::overloaded);
  EXPECT_FALSE(desk.live({2}));
}

TEST(AdmissionDesk, DeadlinesHoldWhileARequestIsPending) {
  admission_desk desk({bounds(), 9, 100, 0});
  auto wanted = request();
  wanted.timeout = std::chrono::milliseconds(50);
  const auto submit = [&](std::uint64_t id) {
    return desk.open({{id}, std::make_shared<const generation_request>(wanted), std::make_shared<silent_outlet>(), {}});
  };
  ASSERT_TRUE(desk.open(submission(1)));
  EXPECT_FALSE(desk.has_deadlines());
  ASSERT_TRUE(submit(2) && submit(3));
  ASSERT_TRUE(desk.take_prompt({3}, prompt(2)));  // waits for its grammar
  EXPECT_TRUE(desk.late(time_point(std::chrono::milliseconds(49))).empty());
  EXPECT_EQ(desk.late(time_point(std::chrono::milliseconds(50))), (std::vector<request_id>{{2}, {3}}));
  desk.admit({3});
  desk.refuse({2});
  EXPECT_FALSE(desk.has_deadlines());  // the scheduler watches what was admitted
}

TEST(AdmissionDesk, EachRequestWithoutASeedDrawsItsOwn) {
  admission_desk first({bounds(), 9, 100, 42});
  admission_desk again({bounds(), 9, 100, 42});
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(first.open(submission(i)));
    ASSERT_TRUE(again.open(submission(i)));
    ASSERT_TRUE(first.take_prompt({i}, prompt(3)));
    ASSERT_TRUE(again.take_prompt({i}, prompt(3)));
    keys.push_back(first.admit({i}).sequences[0].noise_key);
    EXPECT_EQ(again.admit({i}).sequences[0].noise_key, keys.back());
  }
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(keys[1], keys[2]);
}

}  // namespace
}  // namespace tandem

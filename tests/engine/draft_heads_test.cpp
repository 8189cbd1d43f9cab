// Draft heads through the whole engine: the tokens are those without, and what a sequence goes through spoils nothing.
#include <gtest/gtest.h>

#include <future>

#include "tandem/engine.hpp"
#include "tests/support/made_heads.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kLength = 60;

class draft_heads_in_engine : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::temporary_folder;
    const test::made_model rand = test::make_rand();
    test::write_gguf(rand, *folder_ / "rand.gguf");
    test::write_gguf(test::make_cycle(), *folder_ / "cycle.gguf");
    test::write_heads(test::make_medusa(rand), *folder_ / "medusa");
    test::write_heads(test::make_eagle(rand, {.third = false}), *folder_ / "eagle");
    test::write_heads(test::make_eagle(rand, {.ids = {1, 5, 9, 70, 71, 72, 200, 201}}), *folder_ / "eagle3");
    test::write_heads(test::make_cycle_medusa(), *folder_ / "cycle-medusa");
    test::write_heads(test::make_cycle_eagle(), *folder_ / "cycle-eagle");
  }
  static void TearDownTestSuite() { delete folder_; }

  static Options options_for(const std::string& model, const std::string& heads) {
    Options options;
    options.model = (*folder_ / model).string();
    if (!heads.empty()) options.draft_heads = (*folder_ / heads).string();
    options.speculative_config = R"({"num_speculative_tokens": 3})";
    options.dtype = "fp32";
    options.kv_cache_dtype = "fp32";
    options.threads = 1;
    return options;
  }

  static Request question(std::int32_t max_tokens, std::size_t prompt_length = 50, std::int32_t first = 3) {
    Request request;
    for (std::size_t i = 0; i < prompt_length; ++i)
      request.prompt_token_ids.push_back(static_cast<std::int32_t>((static_cast<std::size_t>(first) + i) % 256));
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = max_tokens;
    return request;
  }

  static void expect_always_right(const Choice& choice, const char* what) {
    EXPECT_GT(choice.usage.draft_tokens, choice.usage.completion_tokens / 2) << what;
    EXPECT_EQ(choice.usage.accepted_tokens, choice.usage.draft_tokens) << what;
  }

  static test::temporary_folder* folder_;
};
test::temporary_folder* draft_heads_in_engine::folder_ = nullptr;

TEST_F(draft_heads_in_engine, tokens_are_those_without_heads_greedy_and_sampled_under_every_parameter) {
  Engine plain(options_for("rand.gguf", ""));
  for (const char* heads : {"medusa", "eagle", "eagle3"}) {
    Engine drafting(options_for("rand.gguf", heads));
    for (int variant = 0; variant < 8; ++variant) {
      Request request = question(kLength);
      SamplingParams& sampling = request.sampling;
      sampling.temperature = variant % 2 == 0 ? 0.0F : 0.9F;
      sampling.seed = 5;
      if (variant / 2 == 1) sampling.repetition_penalty = 1.4F;
      if (variant / 2 == 2) sampling.top_p = 0.8F;
      if (variant / 2 == 3) sampling.frequency_penalty = 1.5F;
      const Choice expected = plain.generate(request).choices[0];
      const Choice got = drafting.generate(request).choices[0];
      EXPECT_EQ(got.token_ids, expected.token_ids) << heads << ", variant " << variant;
      EXPECT_GT(got.usage.draft_tokens, 0) << heads;
    }
  }
}

TEST_F(draft_heads_in_engine, A14_always_right_heads_stay_so_cold_and_behind_a_prefix_hit) {
  for (const char* heads : {"cycle-medusa", "cycle-eagle"}) {
    Engine engine(options_for("cycle.gguf", heads));
    const Choice cold = engine.generate(question(kLength)).choices[0];
    expect_always_right(cold, "cold");
    EXPECT_EQ(cold.usage.cached_tokens, 0);
    const Choice warm = engine.generate(question(kLength)).choices[0];
    expect_always_right(warm, "behind a prefix hit");
    EXPECT_GE(warm.usage.cached_tokens, 32);
    EXPECT_EQ(warm.token_ids, cold.token_ids);
    const Choice longer = engine.generate(question(kLength, 100)).choices[0];
    expect_always_right(longer, "behind a hit on an answer");
    EXPECT_GE(longer.usage.cached_tokens, 80);
  }
}

TEST_F(draft_heads_in_engine, A14_always_right_heads_stay_so_through_preemption) {
  for (const char* heads : {"cycle-medusa", "cycle-eagle"}) {
    Options options = options_for("cycle.gguf", heads);
    options.num_kv_blocks = 24;  // of 16 tokens: four sequences of 160 do not fit
    options.max_num_batched_tokens = 64;
    Engine engine(options);
    std::vector<std::future<Output>> pending;
    for (std::int32_t i = 0; i < 4; ++i) pending.push_back(engine.submit(question(120, 40, 60 * i)));
    for (auto& each : pending) {
      const Choice choice = each.get().choices[0];
      EXPECT_EQ(choice.token_ids.size(), 120u);
      expect_always_right(choice, heads);
    }
    EXPECT_EQ(engine.metrics().find("tandem:num_preemptions_total 0\n"), std::string::npos) << "nobody was preempted";
  }
}

TEST_F(draft_heads_in_engine, a_request_names_its_method_and_its_number) {
  Engine engine(options_for("cycle.gguf", "cycle-eagle"));
  Request request = question(kLength);
  request.sampling.speculative_method = "none";
  EXPECT_EQ(engine.generate(request).choices[0].usage.draft_tokens, 0);
  request.sampling.speculative_method = "eagle";
  request.sampling.num_speculative_tokens = 8;
  const Choice fast = engine.generate(request).choices[0];
  expect_always_right(fast, "k = 8");
  EXPECT_LE(fast.usage.steps, kLength / 9 + 3);
  request.sampling.speculative_method = "medusa";
  EXPECT_THROW(engine.generate(request), Error);
}

TEST_F(draft_heads_in_engine, drafts_adaptively_beside_other_sources) {
  Engine plain(options_for("rand.gguf", ""));
  for (const char* heads : {"medusa", "eagle3"}) {
    Options options = options_for("rand.gguf", heads);
    options.draft_model = (*folder_ / "rand.gguf").string();
    options.speculative_config = R"({"adaptive": true})";
    Engine engine(options);
    std::vector<std::future<Output>> pending;
    for (std::int32_t i = 0; i < 8; ++i) pending.push_back(engine.submit(question(kLength, 40, 11 * i)));
    for (std::int32_t i = 0; i < 8; ++i)
      EXPECT_EQ(pending[static_cast<std::size_t>(i)].get().choices[0].token_ids,
                plain.generate(question(kLength, 40, 11 * i)).choices[0].token_ids);
  }
}

TEST_F(draft_heads_in_engine, heads_that_do_not_fit_are_refused_with_the_flag) {
  const auto problem = [](const Options& options) -> std::string {
    try {
      Engine engine(options);
    } catch (const Error& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_NE(problem(options_for("cycle.gguf", "eagle")).find("--draft-heads"), std::string::npos);
  EXPECT_NE(problem(options_for("cycle.gguf", "eagle")).find("made for another model"), std::string::npos);
  EXPECT_NE(problem(options_for("cycle.gguf", "nowhere")).find("there is no such folder"), std::string::npos);
  Options options = options_for("rand.gguf", "medusa");
  options.speculative_config = R"({"method": "eagle"})";
  EXPECT_NE(problem(options).find("eagle heads"), std::string::npos) << problem(options);
}

}  // namespace
}  // namespace tandem

#include "tandem/engine.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem {
namespace {

/// CYCLE answers "abc" with "defg…".
class engine : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::temporary_folder;
    test::write_gguf(test::make_cycle(), *folder_ / "cycle.gguf");
    Options options;
    options.model = (*folder_ / "cycle.gguf").string();
    options.threads = 1;
    engine_ = new Engine(options);
  }
  static void TearDownTestSuite() {
    delete engine_;
    delete folder_;
  }

  static SamplingParams greedy(std::int32_t tokens) {
    SamplingParams sampling;
    sampling.temperature = 0;
    sampling.max_tokens = tokens;
    return sampling;
  }
  static Request request(const std::string& prompt, std::int32_t tokens) {
    Request wanted;
    wanted.prompt = prompt;
    wanted.sampling = greedy(tokens);
    return wanted;
  }

  static test::temporary_folder* folder_;
  static Engine* engine_;
};
test::temporary_folder* engine::folder_ = nullptr;
Engine* engine::engine_ = nullptr;

TEST_F(engine, answers_come_in_the_order_of_the_prompts) {
  const std::vector<Output> outputs = engine_->generate({"abc", "x", "hello "}, greedy(3));
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0].choices[0].text, "def");
  EXPECT_EQ(outputs[1].choices[0].text, "yz{");
  EXPECT_EQ(outputs[2].choices[0].text, "!\"#");
  EXPECT_EQ(outputs[0].prompt_token_ids, (std::vector<std::int32_t>{97, 98, 99}));
  EXPECT_EQ(outputs[0].choices[0].token_ids, (std::vector<std::int32_t>{100, 101, 102}));
  EXPECT_EQ(outputs[0].choices[0].finish_reason, "length");
  EXPECT_EQ(outputs[0].choices[0].usage.completion_tokens, 3);
}

TEST_F(engine, n_choices_are_n_outputs) {
  SamplingParams sampling = greedy(2);
  sampling.n = 3;
  const std::vector<Output> outputs = engine_->generate({"a"}, sampling);
  ASSERT_EQ(outputs[0].choices.size(), 3u);
  for (const Choice& choice : outputs[0].choices) EXPECT_EQ(choice.text, "bc");
}

TEST_F(engine, beams_best_of_and_bad_words_are_there) {
  SamplingParams beams = greedy(3);
  beams.use_beam_search = true;
  beams.n = 2;
  beams.logprobs = 0;
  const Output searched = engine_->generate({"abc"}, beams)[0];
  ASSERT_EQ(searched.choices.size(), 2u);
  EXPECT_EQ(searched.choices[0].text, "def");
  EXPECT_NE(searched.choices[1].text, "def");
  const auto sum = [](const Choice& choice) {
    double total = 0;
    for (const Logprob& token : choice.logprobs) total += static_cast<double>(token.logprob);
    return total;
  };
  EXPECT_GE(sum(searched.choices[0]), sum(searched.choices[1]));

  SamplingParams best = greedy(3);
  best.best_of = 4;
  EXPECT_EQ(engine_->generate({"abc"}, best)[0].choices.size(), 1u);

  SamplingParams without = greedy(1);
  without.bad_words = {"d"};
  EXPECT_NE(engine_->generate({"abc"}, without)[0].choices[0].text, "d");
  without.bad_words = {""};
  EXPECT_THROW(engine_->generate({"abc"}, without), Error);
}

TEST_F(engine, a_stream_is_a_range_of_pieces_that_join_to_the_answer) {
  std::string text;
  std::string reason;
  Stream stream = engine_->stream(request("a", 5));
  for (const Event& event : stream) {
    text += event.text;
    if (!event.finish_reason.empty()) reason = event.finish_reason;
  }
  EXPECT_EQ(text, "bcdef");
  EXPECT_EQ(reason, "length");
}

TEST_F(engine, a_callback_hears_every_piece_and_may_submit_again) {
  std::promise<std::string> done;
  std::string text;
  engine_->submit(request("a", 2), [&](const Event& event) {
    text += event.text;
    if (event.finish_reason.empty()) return;
    engine_->submit(request("x", 1), [&](const Event& next) {
      text += next.text;
      if (!next.finish_reason.empty()) done.set_value(text);
    });
  });
  EXPECT_EQ(done.get_future().get(), "bcy");
}

TEST_F(engine, a_cancelled_request_ends_with_what_it_has) {
  std::promise<std::string> reason;
  const Handle handle = engine_->submit(request("a", 2000), [&](const Event& event) {
    if (!event.finish_reason.empty()) reason.set_value(event.finish_reason);
  });
  handle.cancel();
  EXPECT_EQ(reason.get_future().get(), "cancelled");
  handle.cancel();  // again: nothing happens
}

TEST_F(engine, a_stream_that_is_dropped_frees_its_place) {
  for (int round = 0; round < 20; ++round) {
    Stream stream = engine_->stream(request("a", 2000));
    EXPECT_NE(stream.begin(), stream.end());
  }
  EXPECT_EQ(engine_->generate({"abc"}, greedy(1))[0].choices[0].text, "d");
}

TEST_F(engine, a_refused_request_is_an_exception_that_names_the_field) {
  SamplingParams wrong = greedy(1);
  wrong.top_p = 7;
  try {
    engine_->generate({"a"}, wrong);
    FAIL() << "was accepted";
  } catch (const Error& problem) {
    EXPECT_EQ(problem.code(), "invalid_argument");
    EXPECT_NE(std::string(problem.what()).find("top_p"), std::string::npos) << problem.what();
  }
  Request several = request("a", 1);
  several.prompt_token_ids = {1};
  EXPECT_THROW(engine_->generate(several), Error);
}

TEST_F(engine, a_stop_string_ends_the_answer_and_is_named) {
  SamplingParams sampling = greedy(100);
  sampling.stop = {"ef"};
  const Output output = engine_->generate({"abc"}, sampling)[0];
  EXPECT_EQ(output.choices[0].text, "d");
  EXPECT_EQ(output.choices[0].stop_string, "ef");
}

TEST_F(engine, many_threads_may_ask_at_once) {
  std::vector<std::thread> threads;
  std::vector<std::string> texts(8);
  for (std::size_t index = 0; index < texts.size(); ++index)
    threads.emplace_back([&, index] {
      texts[index] = engine_->generate({std::string(1, static_cast<char>('a' + index))}, greedy(4))[0].choices[0].text;
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t index = 0; index < texts.size(); ++index) {
    ASSERT_EQ(texts[index].size(), 4u);
    EXPECT_EQ(texts[index][0], static_cast<char>('b' + index));
  }
}

TEST_F(engine, tokens_and_text_are_inverse) {
  EXPECT_EQ(engine_->detokenize(engine_->tokenize("héllo")), "héllo");
  EXPECT_FALSE(engine_->metrics().empty());
}

TEST_F(engine, a_model_that_is_not_there_is_an_exception) {
  Options options;
  options.model = "/nowhere/model.gguf";
  EXPECT_THROW(Engine{options}, Error);
  options.model = (*folder_ / "cycle.gguf").string();
  options.dtype = "int3";
  EXPECT_THROW(Engine{options}, Error);
}

TEST(engine_lifetime, destroying_the_engine_ends_what_is_in_flight) {
  const test::temporary_folder folder;
  test::write_gguf(test::make_cycle(), folder / "cycle.gguf");
  Options options;
  options.model = (folder / "cycle.gguf").string();
  options.threads = 1;
  std::future<Output> pending;
  Handle handle;
  {
    Engine short_lived(options);
    Request wanted;
    wanted.prompt = "a";
    wanted.sampling.max_tokens = 2000;
    pending = short_lived.submit(wanted);
    handle = short_lived.submit(wanted, [](const Event&) {});
  }
  handle.cancel();  // its engine is gone: nothing happens
  ASSERT_EQ(pending.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(pending.get().choices[0].finish_reason, "cancelled");
}

TEST(engine_lifetime, a_draft_with_another_vocabulary_is_refused_by_name) {
  const test::temporary_folder folder;
  test::write_gguf(test::make_cycle(), folder / "cycle.gguf");
  test::cycle_options other;
  other.tokenizer = test::pieces_tokenizer({"a", "b", "c"});
  test::write_gguf(test::make_cycle(other), folder / "other.gguf");
  Options options;
  options.model = (folder / "cycle.gguf").string();
  options.draft_model = (folder / "other.gguf").string();
  try {
    Engine refused(options);
    FAIL() << "was accepted";
  } catch (const Error& problem) {
    EXPECT_NE(std::string(problem.what()).find("--draft-model"), std::string::npos) << problem.what();
  }
}

}  // namespace
}  // namespace tandem

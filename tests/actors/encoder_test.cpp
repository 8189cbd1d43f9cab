#include "actors/encoder.hpp"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/lab/lab_tokenizer.hpp"

namespace tandem {
namespace {

using answer = result<std::vector<token_id>>;

std::shared_ptr<const prompt_source> text_prompt(std::string text) {
  return std::make_shared<const prompt_source>(prompt_text{std::move(text), {}, true});
}

TEST(Encoder, TurnsTextIntoIdsOnItsOwnThread) {
  encoder prompts({lab::make_lab_tokenizer(), nullptr, 1, 8});
  std::promise<answer> done;
  ASSERT_TRUE(prompts.push(text_prompt("abz"), [&](answer got) { done.set_value(std::move(got)); }));
  EXPECT_EQ(done.get_future().get().value(), (std::vector<token_id>{0, 1, 25}));
}

TEST(Encoder, AModelWithoutATemplateRefusesChats) {
  encoder prompts({lab::make_lab_tokenizer(), nullptr, 0, 8});
  const auto got = prompts.encode(chat_prompt{"[]", "", "", true, false});
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, error_code::invalid_argument);
}

TEST(Encoder, AFullQueueRefusesAndClosingAnswersWhatIsLeft) {
  std::promise<void> gate;
  std::promise<void> taken;
  auto opened = gate.get_future().share();
  int answered = 0;
  {
    encoder prompts({lab::make_lab_tokenizer(), nullptr, 1, 1});
    ASSERT_TRUE(prompts.push(text_prompt("a"), [&](const answer&) {
      taken.set_value();
      opened.wait();
    }));
    taken.get_future().wait();
    // Encoded or turned away, as the threads happen to run; but answered.
    ASSERT_TRUE(prompts.push(text_prompt("b"), [&](const answer& got) {
      EXPECT_TRUE(got || got.error().code == error_code::unavailable);
      ++answered;
    }));
    const auto refused = prompts.push(text_prompt("c"), [](const answer&) { FAIL(); });
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, error_code::overloaded);
    std::jthread opener([&] { gate.set_value(); });
  }
  EXPECT_EQ(answered, 1);
}

TEST(Encoder, WhoWithdrawsKeepsNoPlaceAndIsNotAnswered) {
  std::promise<void> gate;
  std::promise<void> taken;
  auto opened = gate.get_future().share();
  encoder prompts({.tokenizer = lab::make_lab_tokenizer(), .max_queued = 1, .max_queued_bytes = 10});
  ASSERT_TRUE(prompts.push(text_prompt("a"), [&](const answer&) {
    taken.set_value();
    opened.wait();
  }));
  taken.get_future().wait();
  ASSERT_TRUE(prompts.push(text_prompt(std::string(10, 'b')), [](const answer&) { FAIL(); }, request_id{2}));
  EXPECT_FALSE(prompts.push(text_prompt("c"), [](const answer&) {}, request_id{3}));
  prompts.withdraw({2});
  std::promise<void> answered;
  EXPECT_TRUE(prompts.push(text_prompt("c"), [&](const answer&) { answered.set_value(); }, request_id{3}));
  gate.set_value();
  answered.get_future().wait();
}

TEST(Encoder, TextThatCannotFitTheModelIsRefusedBeforeItIsEncoded) {
  encoder prompts({.tokenizer = lab::make_lab_tokenizer(), .threads = 0, .max_tokens = 4});
  EXPECT_TRUE(prompts.encode(*text_prompt("abcd")));
  const auto got = prompts.encode(*text_prompt(std::string(1 << 20, 'a')));
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, error_code::invalid_argument);
  EXPECT_EQ(got.error().param, "prompt");
  EXPECT_NE(got.error().message.find("1048576 bytes"), std::string::npos) << got.error().message;
  EXPECT_NE(got.error().message.find("at most 4 tokens"), std::string::npos) << got.error().message;
}

TEST(Encoder, TheBytesThatWaitAreBoundedButOneLargePromptMayWait) {
  std::promise<void> gate;
  std::promise<void> taken;
  auto opened = gate.get_future().share();
  const std::string large(1000, 'a');
  encoder prompts({.tokenizer = lab::make_lab_tokenizer(), .max_queued = 8, .max_queued_bytes = 100});
  ASSERT_TRUE(prompts.push(text_prompt("a"), [&](const answer&) {
    taken.set_value();
    opened.wait();
  }));
  taken.get_future().wait();
  EXPECT_TRUE(prompts.push(text_prompt(large), [](const answer&) {}));
  const auto refused = prompts.push(text_prompt("b"), [](const answer&) { FAIL(); });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, error_code::overloaded);
  gate.set_value();
}

}  // namespace
}  // namespace tandem

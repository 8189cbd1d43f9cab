#include "app/hidden_dump.hpp"

#include <gtest/gtest.h>

namespace tandem::test {
namespace {

using app::dumped_sequence;

engine::collected_answer answer_of(std::vector<token_id> prompt, std::vector<std::vector<token_id>> outputs) {
  engine::collected_answer answer(static_cast<std::int32_t>(outputs.size()));
  answer.prompt = std::make_shared<const std::vector<token_id>>(std::move(prompt));
  for (std::size_t i = 0; i < outputs.size(); ++i) answer.choices[i].tokens = std::move(outputs[i]);
  return answer;
}

TEST(hidden_dump, takes_prompt_and_output_of_each_choice_that_said_anything) {
  const auto sequences = app::sequences_of(7, answer_of({1, 2, 3}, {{4}, {}, {5, 6}}));
  ASSERT_EQ(sequences.size(), 2U);
  EXPECT_EQ(sequences[0].name, "7.0");
  EXPECT_EQ(sequences[1].name, "7.2");
  EXPECT_EQ(sequences[1].tokens, (std::vector<token_id>{1, 2, 3, 5, 6}));
  EXPECT_EQ(sequences[1].prompt_tokens, 3);
}

TEST(hidden_dump, has_nothing_of_a_refused_request) {
  engine::collected_answer refused = answer_of({1}, {{2}});
  refused.refused = error{error_code::overloaded, "later", {}};
  EXPECT_TRUE(app::sequences_of(0, refused).empty());
  EXPECT_TRUE(app::sequences_of(0, engine::collected_answer(1)).empty());
}

TEST(hidden_dump, a_shard_ends_before_it_would_be_too_large_and_holds_one_sequence_at_least) {
  std::vector<dumped_sequence> sequences(3);
  for (dumped_sequence& each : sequences) each.tokens.resize(10);
  EXPECT_EQ(app::shard_length(sequences, 2, 60), 3U);
  EXPECT_EQ(app::shard_length(sequences, 2, 59), 2U);
  EXPECT_EQ(app::shard_length(sequences, 2, 1), 1U);
  EXPECT_EQ(app::shard_length({}, 2, 1), 0U);
}

}  // namespace
}  // namespace tandem::test

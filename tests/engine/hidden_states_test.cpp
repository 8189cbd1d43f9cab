#include "engine/hidden_states.hpp"

#include <gtest/gtest.h>

#include "model/draft_heads.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::test {
namespace {

using engine::hidden_state_reader;
using model::usual_feature_layers;

TEST(hidden_states, are_of_the_layers_that_published_heads_read) {
  EXPECT_EQ(usual_feature_layers(32), (std::vector<std::int32_t>{2, 16, 29}));
  EXPECT_EQ(usual_feature_layers(30), (std::vector<std::int32_t>{2, 15, 27}));
  EXPECT_EQ(usual_feature_layers(4), (std::vector<std::int32_t>{2, 2, 1}));
  EXPECT_EQ(usual_feature_layers(1), (std::vector<std::int32_t>{1, 0, 0}));
}

TEST(hidden_states, come_in_steps_in_order_for_one_sequence_after_another) {
  const temporary_folder folder;
  write_gguf(make_rand(), folder / "rand.gguf");
  config::engine_options options;
  options.model = (folder / "rand.gguf").string();
  options.max_num_batched_tokens = 4;
  auto reader = hidden_state_reader::open(options, {});
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->width(), 4 * reader->hidden_size());
  const auto read = [&](const std::vector<token_id>& tokens) {
    std::vector<float> all;
    std::vector<std::int32_t> steps;
    const auto consume = [&](std::span<const float> states, std::int32_t rows) -> result<void> {
      EXPECT_EQ(states.size(), static_cast<std::size_t>(rows) * static_cast<std::size_t>(reader->width()));
      all.insert(all.end(), states.begin(), states.end());
      steps.push_back(rows);
      return {};
    };
    EXPECT_TRUE(reader->read(tokens, consume).has_value());
    EXPECT_EQ(steps, (std::vector<std::int32_t>{4, 4, 2}));
    return all;
  };
  const std::vector<token_id> tokens = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const std::vector<float> first = read(tokens);
  EXPECT_NE(read({50, 6, 7, 8, 9, 10, 11, 12, 13, 14}), first);
  EXPECT_EQ(read(tokens), first) << "nothing is left of the sequence before";
}

TEST(hidden_states, what_the_consumer_refuses_ends_the_reading) {
  const temporary_folder folder;
  write_gguf(make_rand(), folder / "rand.gguf");
  config::engine_options options;
  options.model = (folder / "rand.gguf").string();
  options.max_num_batched_tokens = 2;
  options.num_kv_blocks = 1;
  options.max_model_len = 16;
  auto reader = hidden_state_reader::open(options, {});
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  int calls = 0;
  const auto refuse = [&](std::span<const float>, std::int32_t) -> result<void> {
    ++calls;
    return fail(error_code::io, "full");
  };
  const auto refused = reader->read(std::vector<token_id>{1, 2, 3, 4}, refuse);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "full");
  EXPECT_EQ(calls, 1);
  const auto too_long = reader->read(std::vector<token_id>(17, 1), refuse);
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().param, "--num-kv-blocks");
}

}  // namespace
}  // namespace tandem::test

#include "tests/support/made_models.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/model.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::test {
namespace {

std::shared_ptr<const model::model> written(const made_model& made) {
  const temporary_folder folder;
  write_gguf(made, folder / "made.gguf");
  EXPECT_LT(std::filesystem::file_size(folder / "made.gguf"), 1U << 20);
  auto opened = model::open_model(folder / "made.gguf");
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? *opened : nullptr;
}

std::vector<float> row_of(const model::tensor& weight, std::int64_t row) {
  std::vector<float> out(static_cast<std::size_t>(weight.columns));
  model::dequantize_row(weight, row, out.data());
  return out;
}

// The token whose head row has the largest product with the embedding of `token`.
token_id winner(const model::description& sizes, token_id token) {
  const auto embedding = row_of(*sizes.embedding, token);
  token_id best = kNoToken;
  float best_logit = 0.0F;
  for (std::int32_t row = 0; row < sizes.vocabulary_size; ++row) {
    const auto weights = row_of(*sizes.output, row);
    float logit = 0.0F;
    for (std::size_t i = 0; i < weights.size(); ++i) logit += weights[i] * embedding[i];
    if (logit > best_logit) {
      best = row;
      best_logit = logit;
    }
  }
  return best;
}

TEST(made_models, CYCLE_leads_from_each_token_to_the_next_of_its_ring) {
  cycle_options options;
  options.ring = {5, 9, 200, 7};
  const auto opened = written(make_cycle(options));
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(winner(opened->describe(), 5), 9);
  EXPECT_EQ(winner(opened->describe(), 9), 200);
  EXPECT_EQ(winner(opened->describe(), 200), 7);
  EXPECT_EQ(winner(opened->describe(), 7), 5);
  EXPECT_EQ(winner(opened->describe(), 100), 5) << "a token outside leads to the start";
}

TEST(made_models, CYCLE_BAD_is_wrong_at_every_mth_position_of_the_ring) {
  cycle_options options;
  options.ring = {10, 11, 12, 13, 14, 15};
  options.bad_every = 3;
  const auto opened = written(make_cycle(options));
  ASSERT_NE(opened, nullptr);
  const token_id expected[] = {11, 12, 14, 14, 15, 11};
  for (int position = 0; position < 6; ++position) {
    EXPECT_EQ(winner(opened->describe(), 10 + position), expected[position]) << position;
  }
}

TEST(made_models, BYTES_has_all_bytes_extra_pieces_and_its_end_tokens) {
  cycle_options options;
  options.tokenizer = bytes_tokenizer({"aa", "\xF0\x9F\x91"});
  const auto opened = written(make_cycle(options));
  ASSERT_NE(opened, nullptr);
  const text::tokenizer_spec& spec = opened->tokenizer();
  EXPECT_EQ(spec.pieces.size(), 261U);
  EXPECT_EQ(spec.pieces['A'], "A");
  EXPECT_EQ(spec.pieces[' '], "\u0120");
  EXPECT_EQ(spec.pieces[256], "aa");
  EXPECT_EQ(spec.eos, options.tokenizer.find("<|im_end|>"));
  EXPECT_EQ(spec.end_tokens, (std::vector<token_id>{259, 260}));
  EXPECT_EQ(spec.bos, kNoToken);
  EXPECT_TRUE(spec.merges.empty());
  EXPECT_FALSE(spec.chat_template.empty());
}

TEST(made_models, RAND_is_the_same_for_the_same_seed_and_near_for_a_little_noise) {
  rand_options options;
  const std::string first = to_gguf(make_rand(options)).lay_out().bytes;
  EXPECT_EQ(first, to_gguf(make_rand(options)).lay_out().bytes);
  options.seed = 2;
  EXPECT_NE(first, to_gguf(make_rand(options)).lay_out().bytes);

  options.seed = 1;
  options.noise = 0.1F;
  const auto base = make_rand({});
  const auto noisy = make_rand(options);
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < base.tensors[0].values.size(); ++i) {
    difference += std::pow(static_cast<double>(noisy.tensors[0].values[i] - base.tensors[0].values[i]), 2.0);
    size += std::pow(static_cast<double>(base.tensors[0].values[i]), 2.0);
  }
  EXPECT_NEAR(std::sqrt(difference / size), 0.1, 0.01);
}

TEST(made_models, RAND_of_every_setting_opens) {
  for (const char* architecture : {"llama", "qwen2"}) {
    for (const bool tied : {false, true}) {
      for (const auto kind : {model::tensor_kind::f32, model::tensor_kind::f16, model::tensor_kind::bf16,
                              model::tensor_kind::q8_0, model::tensor_kind::q4_0}) {
        rand_options options;
        options.architecture = architecture;
        options.tied = tied;
        options.kind = kind;
        const auto opened = written(make_rand(options));
        ASSERT_NE(opened, nullptr);
        const model::description& sizes = opened->describe();
        EXPECT_EQ(sizes.output == sizes.embedding, tied);
        EXPECT_EQ(sizes.rope.interleaved, std::string(architecture) == "llama");
        EXPECT_EQ(sizes.layers[1].query_bias != nullptr, std::string(architecture) == "qwen2");
        EXPECT_EQ(sizes.layers[0].up->kind, kind);
        EXPECT_EQ(sizes.head_dim, 16);
      }
    }
  }
}

TEST(made_models, quantised_weights_stay_near_the_exact_ones) {
  rand_options options;
  const auto exact = make_rand(options);
  for (const auto& [kind, tolerance] : {std::pair{model::tensor_kind::q8_0, 0.01}, {model::tensor_kind::q4_0, 0.15}}) {
    options.kind = kind;
    const auto opened = written(make_rand(options));
    ASSERT_NE(opened, nullptr);
    const auto row = row_of(*opened->describe().embedding, 3);
    double difference = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double value = exact.tensors[0].values[3 * row.size() + i];
      difference += (row[i] - value) * (row[i] - value);
      size += value * value;
    }
    EXPECT_LT(std::sqrt(difference / size), tolerance);
  }
}

}  // namespace
}  // namespace tandem::test

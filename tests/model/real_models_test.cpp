/// Real files, when TANDEM_TEST_MODELS names the folder that has them.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "model/inspect.hpp"
#include "model/model.hpp"

namespace tandem::model {
namespace {

struct real_model {
  const char* file;
  const char* architecture;
  std::size_t layers;
  std::int32_t vocabulary;
  bool tied;
  bool interleaved;
  text::pre_tokenizer pre;
  std::vector<token_id> end_tokens;
};

class real_models : public testing::TestWithParam<real_model> {};

// Trained weights are neither all zero nor huge: a wrong layout of a kind shows here at once.
void expect_sane(const tensor& weight) {
  std::vector<float> values(static_cast<std::size_t>(weight.columns));
  double squares = 0.0;
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < weight.rows; row += std::max<std::int64_t>(1, weight.rows / 16)) {
    dequantize_row(weight, row, values.data());
    for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
    count += weight.columns;
  }
  const double deviation = std::sqrt(squares / static_cast<double>(count));
  EXPECT_GT(deviation, 1e-4) << weight.name;
  EXPECT_LT(deviation, 300.0) << weight.name;
}

TEST_P(real_models, opens_with_the_sizes_it_is_known_for) {
  const real_model& expected = GetParam();
  const char* folder = std::getenv("TANDEM_TEST_MODELS");
  if (folder == nullptr) GTEST_SKIP() << "TANDEM_TEST_MODELS does not name a folder of models";
  const auto path = std::filesystem::path(folder) / expected.file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto opened = open_model(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const description& sizes = (*opened)->describe();
  EXPECT_EQ(sizes.architecture, expected.architecture);
  EXPECT_EQ(sizes.layers.size(), expected.layers);
  EXPECT_EQ(sizes.vocabulary_size, expected.vocabulary);
  EXPECT_EQ(sizes.output == sizes.embedding, expected.tied);
  EXPECT_EQ(sizes.rope.interleaved, expected.interleaved);
  EXPECT_EQ((*opened)->tokenizer().pre, expected.pre);
  EXPECT_EQ((*opened)->tokenizer().end_tokens, expected.end_tokens);
  EXPECT_FALSE((*opened)->tokenizer().add_bos);
  EXPECT_FALSE((*opened)->tokenizer().chat_template.empty());
  for (const tensor& weight : (*opened)->tensors()) {
    if (weight.rows > 1) expect_sane(weight);
  }
  EXPECT_NE(inspect_report(**opened).find(expected.architecture), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    files, real_models,
    testing::Values(
        real_model{"smollm2-135m.gguf", "llama", 30, 49152, true, true, text::pre_tokenizer::smollm, {0, 2}},
        real_model{
            "qwen2.5-coder-0.5b.gguf", "qwen2", 24, 151936, false, false, text::pre_tokenizer::qwen2, {151643, 151645}},
        real_model{"qwen2.5-coder-1.5b.gguf",
                   "qwen2",
                   28,
                   151936,
                   false,
                   false,
                   text::pre_tokenizer::qwen2,
                   {151643, 151645}}),
    [](const auto& each) {
      std::string name = each.param.file;
      for (char& character : name) {
        if (std::isalnum(static_cast<unsigned char>(character)) == 0) character = '_';
      }
      return name;
    });

}  // namespace
}  // namespace tandem::model

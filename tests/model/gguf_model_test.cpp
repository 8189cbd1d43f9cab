#include <gtest/gtest.h>

#include "model/open_formats.hpp"
#include "tests/support/encode_tensor.hpp"
#include "tests/support/made_models.hpp"

namespace tandem::model {
namespace {

using scaling = rope_description::scaling_kind;

result<model_parts> parse(const test::gguf_writer& writer) {
  const std::string bytes = writer.lay_out().bytes;
  return parse_gguf_model(std::as_bytes(std::span(bytes)), "made.gguf");
}

TEST(gguf_model, architectures_and_pre_tokenizers_it_does_not_know_are_refused_by_name) {
  auto architecture = test::to_gguf(test::make_rand());
  architecture.remove("general.architecture");
  architecture.add_text("general.architecture", "mamba");
  const auto refused = parse(architecture);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::unsupported);
  EXPECT_NE(refused.error().message.find("\"mamba\" is not supported; supported are llama, qwen2"), std::string::npos);

  for (const auto& [key, value] : {std::pair{"tokenizer.ggml.pre", "default"}, {"tokenizer.ggml.model", "llama"}}) {
    auto writer = test::to_gguf(test::make_rand());
    writer.remove(key);
    writer.add_text(key, value);
    const auto other = parse(writer);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, error_code::unsupported);
    EXPECT_NE(other.error().message.find(value), std::string::npos) << other.error().message;
  }
}

TEST(gguf_model, qwen2_text_is_normalised_and_its_heads_rotate_in_halves) {
  test::rand_options options;
  options.architecture = "qwen2";
  auto writer = test::to_gguf(test::make_rand(options));
  writer.remove("tokenizer.ggml.pre");
  writer.add_text("tokenizer.ggml.pre", "qwen2");
  const auto parts = parse(writer);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->tokenizer.pre, text::pre_tokenizer::qwen2);
  EXPECT_TRUE(parts->tokenizer.normalize_nfc);
  EXPECT_FALSE(parts->sizes.rope.interleaved);
}

TEST(gguf_model, E4_scaling_keys_and_the_factor_tensor_are_read) {
  test::rand_options options;
  options.rope.scaling = scaling::linear;
  options.rope.factor = 4.0;
  auto parts = parse(test::to_gguf(test::make_rand(options)));
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->sizes.rope.scaling, scaling::linear);
  EXPECT_EQ(parts->sizes.rope.factor, 4.0);

  options.rope.scaling = scaling::yarn;
  options.rope.original_context = 64;
  parts = parse(test::to_gguf(test::make_rand(options)));
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->sizes.rope.scaling, scaling::yarn);
  EXPECT_EQ(parts->sizes.rope.original_context, 64);

  options.rope.scaling = scaling::llama3;
  options.rope.factor = 8.0;
  parts = parse(test::to_gguf(test::make_rand(options)));
  ASSERT_TRUE(parts) << parts.error().message;
  rope_description wanted = options.rope;
  wanted.dimensions = 16;
  const auto expected = rope_frequencies(wanted).frequencies;
  const auto actual = rope_frequencies(parts->sizes.rope).frequencies;
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i] / expected[i], 1.0, 1e-6);
}

TEST(gguf_model, E4_an_unknown_scaling_type_is_refused) {
  auto writer = test::to_gguf(test::make_rand());
  writer.add_text("llama.rope.scaling.type", "longrope");
  const auto refused = parse(writer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::unsupported);
  EXPECT_NE(refused.error().message.find("longrope"), std::string::npos);
}

TEST(gguf_model, E4_factor_tensors_of_the_wrong_size_or_with_zeros_are_refused) {
  for (const std::vector<float>& factors : {std::vector<float>(5, 1.0F), std::vector<float>(8, 0.0F)}) {
    test::rand_options options;
    options.rope.frequency_divisors = factors;
    const auto refused = parse(test::to_gguf(test::make_rand(options)));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("rope_freqs.weight"), std::string::npos);
  }
}

TEST(gguf_model, a_missing_layer_tensor_is_refused_and_so_is_one_nobody_would_use) {
  auto missing = test::to_gguf(test::make_rand());
  missing.remove_tensor("blk.1.ffn_up.weight");
  const auto incomplete = parse(missing);
  ASSERT_FALSE(incomplete);
  EXPECT_NE(incomplete.error().message.find("\"blk.1.ffn_up.weight\" is missing"), std::string::npos);

  auto extra = test::to_gguf(test::make_rand());
  extra.add_tensor("blk.0.attn_q_norm.weight", {16}, 0, std::string(64, '\0'));
  const auto unused = parse(extra);
  ASSERT_FALSE(unused);
  EXPECT_EQ(unused.error().code, error_code::unsupported);
  EXPECT_NE(unused.error().message.find("attn_q_norm"), std::string::npos);
}

TEST(gguf_model, biases_are_in_every_layer_or_in_none) {
  auto writer = test::to_gguf(test::make_rand());
  writer.add_tensor("blk.0.attn_q.bias", {64}, 0, std::string(256, '\0'));
  const auto half = parse(writer);
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().message.find("blk.1.attn_q.bias"), std::string::npos);
  writer.add_tensor("blk.1.attn_q.bias", {64}, 0, std::string(256, '\0'));
  const auto both = parse(writer);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_NE(both->sizes.layers[1].query_bias, nullptr);
  EXPECT_EQ(both->sizes.layers[1].key_bias, nullptr);
}

TEST(gguf_model, end_tokens_are_the_union_of_ids_and_well_known_names) {
  auto writer = test::to_gguf(test::make_rand());
  writer.add_u32("tokenizer.ggml.eot_token_id", 65);
  writer.add_u32("tokenizer.ggml.eom_token_id", 66);
  const auto parts = parse(writer);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->tokenizer.end_tokens, (std::vector<token_id>{65, 66, 257, 258}));
}

TEST(gguf_model, BOS_is_added_only_when_the_file_says_so_and_has_one) {
  test::rand_options options;
  options.tokenizer.add_bos = true;
  EXPECT_FALSE(parse(test::to_gguf(test::make_rand(options))));
  options.tokenizer.bos = 258;
  const auto parts = parse(test::to_gguf(test::make_rand(options)));
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_TRUE(parts->tokenizer.add_bos);
  EXPECT_EQ(parts->tokenizer.bos, 258);
}

}  // namespace
}  // namespace tandem::model

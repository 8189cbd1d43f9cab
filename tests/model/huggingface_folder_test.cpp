#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "model/model.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::model {
namespace {

using nlohmann::json;
using scaling = rope_description::scaling_kind;

std::vector<float> values_of(const tensor& weight) {
  std::vector<float> out(static_cast<std::size_t>(weight.rows * weight.columns));
  for (std::int64_t row = 0; row < weight.rows; ++row) dequantize_row(weight, row, out.data() + row * weight.columns);
  return out;
}

/// A written folder whose config.json a test may change before it opens it.
class made_folder {
 public:
  explicit made_folder(const test::rand_options& options = {}, int shards = 1) {
    test::write_huggingface_folder(test::make_rand(options), folder_.path(), shards);
  }
  made_folder& change(const std::string& file, const std::function<void(json&)>& edit) {
    json content = json::parse(test::read_file(folder_ / file));
    edit(content);
    test::write_file(folder_ / file, content.dump());
    return *this;
  }
  result<std::shared_ptr<const model>> open() const { return open_model(folder_.path()); }
  const test::temporary_folder& folder() const { return folder_; }

 private:
  test::temporary_folder folder_;
};

void expect_refused(const made_folder& made, error_code code, const std::string& mention) {
  const auto opened = made.open();
  ASSERT_FALSE(opened) << mention;
  EXPECT_EQ(opened.error().code, code) << opened.error().message;
  EXPECT_NE(opened.error().message.find(mention), std::string::npos) << opened.error().message;
}

TEST(huggingface_folder, the_same_model_in_both_formats_has_the_same_weights) {
  for (const char* architecture : {"llama", "qwen2"}) {
    test::rand_options options;
    options.architecture = architecture;
    const made_folder made(options);
    test::write_gguf(test::make_rand(options), made.folder() / "same.gguf");
    const auto folder = made.open();
    const auto gguf = open_model(made.folder() / "same.gguf");
    ASSERT_TRUE(folder) << folder.error().message;
    ASSERT_TRUE(gguf) << gguf.error().message;
    const description& a = (*folder)->describe();
    const description& b = (*gguf)->describe();
    EXPECT_EQ(values_of(*a.embedding), values_of(*b.embedding));
    EXPECT_EQ(values_of(*a.output), values_of(*b.output));
    EXPECT_EQ(values_of(*a.layers[1].down), values_of(*b.layers[1].down));
    EXPECT_EQ(a.parameters, b.parameters);
    EXPECT_EQ(a.vocabulary_size, b.vocabulary_size);
    EXPECT_FALSE(a.rope.interleaved);
    EXPECT_EQ((*folder)->tokenizer().pieces, (*gguf)->tokenizer().pieces);
    EXPECT_EQ((*folder)->tokenizer().end_tokens, (*gguf)->tokenizer().end_tokens);
    EXPECT_EQ((*folder)->tokenizer().chat_template, (*gguf)->tokenizer().chat_template);
  }
}

// Row 2i+s of a GGUF head is row s*d/2+i here, so pairs (2i, 2i+1) there are pairs (i, i+d/2) here.
TEST(huggingface_folder, the_query_rows_of_a_llama_differ_from_GGUF_by_the_rotation_order_only) {
  const made_folder made;
  test::write_gguf(test::make_rand(), made.folder() / "same.gguf");
  const auto folder = made.open();
  const auto gguf = open_model(made.folder() / "same.gguf");
  ASSERT_TRUE(folder && gguf);
  const tensor& halves = *(*folder)->describe().layers[0].query;
  const tensor& pairs = *(*gguf)->describe().layers[0].query;
  const std::int64_t head_dim = (*gguf)->describe().head_dim;
  std::vector<float> a(static_cast<std::size_t>(halves.columns));
  std::vector<float> b(a.size());
  for (std::int64_t row = 0; row < halves.rows; ++row) {
    const std::int64_t in_head = row % head_dim;
    const std::int64_t pair_row = row - in_head + in_head % (head_dim / 2) * 2 + in_head / (head_dim / 2);
    dequantize_row(halves, row, a.data());
    dequantize_row(pairs, pair_row, b.data());
    ASSERT_EQ(a, b) << row;
  }
}

TEST(huggingface_folder, shards_give_the_same_model_as_one_file) {
  const made_folder one;
  const made_folder many({}, 3);
  const auto a = one.open();
  const auto b = many.open();
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_EQ(values_of(*(*a)->describe().output), values_of(*(*b)->describe().output));
  EXPECT_EQ((*a)->tensors().size(), (*b)->tensors().size());
}

TEST(huggingface_folder, half_precision_kinds_open) {
  for (const auto kind : {tensor_kind::f16, tensor_kind::bf16}) {
    test::rand_options options;
    options.kind = kind;
    const auto opened = made_folder(options).open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ((*opened)->describe().layers[0].gate->kind, kind);
  }
}

TEST(huggingface_folder, tied_embeddings_follow_the_config_and_a_missing_head_is_refused) {
  test::rand_options tied;
  tied.tied = true;
  made_folder agreeing(tied);
  ASSERT_TRUE(agreeing.open());
  const auto opened = *agreeing.open();
  EXPECT_EQ(opened->describe().output, opened->describe().embedding);

  agreeing.change("config.json", [](json& config) { config["tie_word_embeddings"] = false; });
  expect_refused(agreeing, error_code::corrupt, "\"lm_head.weight\" is missing");

  made_folder both;  // a head in the file, but the config ties: the config wins, as in transformers
  both.change("config.json", [](json& config) { config["tie_word_embeddings"] = true; });
  const auto with_head = both.open();
  ASSERT_TRUE(with_head) << with_head.error().message;
  EXPECT_EQ((*with_head)->describe().output, (*with_head)->describe().embedding);
}

TEST(huggingface_folder, E4_old_and_new_rope_keys_mean_the_same) {
  const json settings = {
      {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 64}};
  const auto opened_with = [&](const char* outer, const char* inner) {
    made_folder made;
    made.change("config.json", [&](json& config) {
      config.erase("rope_scaling");
      config[outer] = settings;
      config[outer][inner] = "llama3";
      if (std::string(outer) != "rope_parameters") return;
      config.erase("rope_theta");
      config[outer]["rope_theta"] = 10000;
    });
    return made.open();
  };
  const auto oldest = opened_with("rope_scaling", "type");
  ASSERT_TRUE(oldest) << oldest.error().message;
  EXPECT_EQ((*oldest)->describe().rope.scaling, scaling::llama3);
  const auto expected = rope_frequencies((*oldest)->describe().rope).frequencies;
  EXPECT_NE(expected, rope_frequencies([&] {
                        auto plain = (*oldest)->describe().rope;
                        plain.scaling = scaling::none;
                        return plain;
                      }())
                          .frequencies);
  for (const auto& [outer, inner] : {std::pair{"rope_scaling", "rope_type"}, {"rope_parameters", "rope_type"}}) {
    const auto opened = opened_with(outer, inner);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(rope_frequencies((*opened)->describe().rope).frequencies, expected) << outer;
  }
}

TEST(huggingface_folder, E4_linear_and_yarn_are_read_with_their_numbers) {
  made_folder linear;
  linear.change("config.json", [](json& config) { config["rope_scaling"] = {{"type", "linear"}, {"factor", 2}}; });
  ASSERT_TRUE(linear.open());
  EXPECT_EQ((*linear.open())->describe().rope.scaling, scaling::linear);
  EXPECT_EQ((*linear.open())->describe().rope.factor, 2.0);

  made_folder yarn;
  yarn.change("config.json", [](json& config) {
    config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {"beta_fast", 16}, {"attention_factor", 1.5}};
  });
  const auto opened = yarn.open();
  ASSERT_TRUE(opened) << opened.error().message;
  const rope_description& rope = (*opened)->describe().rope;
  EXPECT_EQ(rope.scaling, scaling::yarn);
  EXPECT_EQ(rope.original_context, 512) << "without its own key: the model's positions";
  EXPECT_EQ(rope.beta_fast, 16.0);
  EXPECT_EQ(rope_frequencies(rope).magnitude, 1.5);
}

TEST(huggingface_folder, E4_settings_nobody_would_honour_are_refused) {
  const auto refuse = [](const char* key, const json& value, error_code code, const std::string& mention) {
    made_folder made;
    made.change("config.json", [&](json& config) { config[key] = value; });
    expect_refused(made, code, mention);
  };
  refuse("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}, error_code::unsupported, "\"dynamic\"");
  refuse("rope_scaling", {{"factor", 2.0}}, error_code::unsupported, "RoPE scaling \"\"");
  refuse("rope_scaling", {{"rope_type", "linear"}}, error_code::corrupt, "\"factor\": it is missing");
  refuse("rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}, error_code::corrupt, "not above 0");
  refuse("rope_scaling", "linear", error_code::corrupt, "it is no object");
  refuse("rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}, error_code::unsupported, "per kind");
  refuse("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}, error_code::corrupt,
         "original_max_position_embeddings");
  refuse("partial_rotary_factor", 0.5, error_code::unsupported, "partly rotated");
  refuse("hidden_act", "gelu", error_code::unsupported, "\"gelu\"");
  refuse("mlp_bias", true, error_code::unsupported, "mlp_bias");
  refuse("quantization_config", {{"quant_method", "awq"}}, error_code::unsupported, "GGUF");
  refuse("model_type", "mamba", error_code::unsupported, "supported are llama, qwen2");
  refuse("hidden_size", -1, error_code::corrupt, "hidden_size");
  refuse("hidden_size", 1ULL << 62, error_code::corrupt, "hidden_size");
  refuse("hidden_size", 65, error_code::corrupt, "says");
  refuse("num_hidden_layers", 3, error_code::corrupt, "is missing");
  refuse("num_hidden_layers", 1, error_code::unsupported, "model.layers.1.");
  refuse("num_key_value_heads", 3, error_code::corrupt, "evenly");
  refuse("vocab_size", 1000, error_code::corrupt, "model.embed_tokens.weight");
  refuse("attention_bias", true, error_code::corrupt, "q_proj.bias");
}

TEST(huggingface_folder, an_embedding_larger_than_the_tokenizer_is_padded_and_a_smaller_one_refused) {
  made_folder padded;
  padded.change("tokenizer.json", [](json& content) {
    content["added_tokens"].erase(2);
    content["model"]["vocab"].erase("<|endoftext|>");
  });
  const auto opened = padded.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->tokenizer().pieces.size(), 259U);
  EXPECT_EQ((*opened)->tokenizer().kinds.back(), text::token_kind::unused);

  made_folder larger;
  larger.change("tokenizer.json", [](json& content) { content["model"]["vocab"]["zz"] = 259; });
  expect_refused(larger, error_code::corrupt, "only 259 rows");
}

TEST(huggingface_folder, missing_files_are_named) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const made_folder made;
    std::filesystem::remove(made.folder() / name);
    expect_refused(made, error_code::not_found, name);
  }
}

}  // namespace
}  // namespace tandem::model

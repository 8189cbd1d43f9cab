#include "model/huggingface_config.hpp"

#include <fmt/format.h>

#include "config/limits.hpp"
#include "model/huggingface_rope.hpp"
#include "model/printable.hpp"

namespace tandem::model {
namespace {

const architecture* read_architecture(config_fields& fields) {
  const std::string name = fields.text_or("model_type", "");
  const architecture* shape = find_architecture(name);
  if (shape == nullptr) {
    fields.refuse(error_code::unsupported, "model_type",
                  fmt::format("architecture \"{}\" is not supported; supported are {}", printable(name, 40),
                              supported_architectures()));
  }
  return shape;
}

void read_sizes(config_fields& fields, hyperparameters& numbers) {
  numbers.layers = fields.integer("num_hidden_layers", limits::kMaxLayers);
  numbers.hidden = fields.integer("hidden_size", limits::kMaxHidden);
  numbers.intermediate = fields.integer("intermediate_size", limits::kMaxIntermediate);
  numbers.heads = fields.integer("num_attention_heads", limits::kMaxHeads);
  numbers.kv_heads = fields.integer_or("num_key_value_heads", limits::kMaxHeads, numbers.heads);
  numbers.context_length = fields.integer("max_position_embeddings", INT32_MAX);
  numbers.vocabulary = fields.integer("vocab_size", static_cast<std::int64_t>(limits::kMaxVocabulary));
  numbers.norm_epsilon = fields.real_or(fields.root(), "rms_norm_eps", 1e-6);
  numbers.head_dim = fields.integer_or("head_dim", limits::kMaxHeadDim, 0);
  if (fields.failure() || numbers.head_dim != 0) return;
  numbers.head_dim = numbers.hidden / numbers.heads;
  if (numbers.hidden % numbers.heads == 0) return;
  fields.refuse(error_code::corrupt, "num_attention_heads",
                fmt::format("{} heads do not divide the hidden size {}", numbers.heads, numbers.hidden));
}

// Settings that would change the numbers and that the layers here do not have.
void refuse_unknown_settings(config_fields& fields) {
  const std::string activation = fields.text_or("hidden_act", "silu");
  if (activation != "silu") {
    fields.refuse(error_code::unsupported, "hidden_act",
                  fmt::format("\"{}\" is not supported, only \"silu\" is", printable(activation, 40)));
  }
  for (const std::string_view key : {"mlp_bias", "use_sliding_window"}) {
    if (fields.boolean_or(key, false)) fields.refuse(error_code::unsupported, key, "this setting is not supported");
  }
  if (fields["quantization_config"]) {
    fields.refuse(error_code::unsupported, "quantization_config",
                  "quantised safetensors are not supported; use a GGUF file or the unquantised model");
  }
}

}  // namespace

void read_layer_numbers(config_fields& fields, hyperparameters& numbers) {
  read_sizes(fields, numbers);
  if (fields.failure()) return;
  read_huggingface_rope(fields, numbers);
  refuse_unknown_settings(fields);
}

result<huggingface_config> parse_huggingface_config(std::string_view json, std::string_view path) {
  text::json_document document;
  const auto root = document.parse(json, path);
  if (!root) return tl::unexpected(root.error());
  config_fields fields(*root, path);
  huggingface_config config;
  hyperparameters& numbers = config.numbers;
  config.shape = read_architecture(fields);
  if (fields.failure()) return tl::unexpected(*fields.failure());
  numbers.architecture = config.shape->name;
  numbers.name = printable(fields.text_or("_name_or_path", ""), 200);
  numbers.format = "safetensors";
  numbers.source = path;
  numbers.tied_embeddings = fields.boolean_or("tie_word_embeddings", false);  // transformers' default for these two
  if (config.shape->has_attention_bias_setting) numbers.attention_bias = fields.boolean_or("attention_bias", false);
  read_layer_numbers(fields, numbers);
  if (fields.failure()) return tl::unexpected(*fields.failure());
  return config;
}

}  // namespace tandem::model

#pragma once
/// Architectures as data: which tensors a layer has, how each file format names them, and their shapes. A new
/// architecture of the same block structure is one more table.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/model.hpp"

namespace tandem::model {

/// A size that the hyperparameters give.
enum class size_of : std::uint8_t { one, hidden, query, key_value, intermediate, head };

/// When a layer has a part.
enum class need : std::uint8_t {
  always,
  attention_bias,  ///< as the configuration says; without a word there, in all layers or in none
};

struct layer_part {
  const tensor* layer::*slot;
  std::string_view gguf_name;         ///< after "blk.N."
  std::string_view huggingface_name;  ///< after "model.layers.N."
  size_of rows;
  size_of columns;
  need needed;
};

struct architecture {
  std::string_view name;            ///< GGUF's general.architecture and config.json's model_type
  bool gguf_interleaved_rope;       ///< GGUF stores query and key rows permuted: pairs (2i, 2i+1) rotate
  bool has_attention_bias_setting;  ///< config.json's attention_bias counts; else the table decides
  std::span<const layer_part> parts;
};

/// Null when unknown.
const architecture* find_architecture(std::string_view name);
/// "llama, qwen2": for messages.
std::string supported_architectures();

/// How a file format names tensors.
struct tensor_naming {
  std::string_view layer_prefix;  ///< before the layer's number
  std::string_view layer_part::*part;
  std::string_view embedding;
  std::string_view final_norm;
  std::string_view output;
  std::span<const std::string_view> ignored;  ///< ends of names that carry nothing the device needs
};
extern const tensor_naming kGgufNaming;
extern const tensor_naming kHuggingfaceNaming;

}  // namespace tandem::model

#pragma once
/// The numbers of a model as its file states them, in one form for every file format, before tensors are looked at.

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "model/model.hpp"

namespace tandem::model {

struct hyperparameters {
  std::string architecture;
  std::string name;
  std::string format;  ///< "GGUF v3", "safetensors"
  std::string source;  ///< the file that states them, for messages
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t context_length = 0;
  std::optional<std::int64_t> vocabulary;  ///< absent: the embedding's rows say it
  double norm_epsilon = 1e-5;
  rope_description rope;
  std::optional<bool> tied_embeddings;  ///< absent: tied when there is no output matrix
  std::optional<bool> attention_bias;   ///< absent: as the file's first layer has it
};

/// Bounds and divisibility. Error: corrupt, naming the source and the field.
result<void> check_hyperparameters(const hyperparameters& numbers);

}  // namespace tandem::model

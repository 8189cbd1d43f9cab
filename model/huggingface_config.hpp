#pragma once
/// config.json of a Hugging Face folder.

#include <string_view>

#include "core/result.hpp"
#include "model/architecture.hpp"
#include "model/config_fields.hpp"
#include "model/hyperparameters.hpp"

namespace tandem::model {

struct huggingface_config {
  const architecture* shape = nullptr;
  hyperparameters numbers;
};
/// Errors: corrupt, unsupported (an architecture, a RoPE scaling or another setting nobody would honour).
result<huggingface_config> parse_huggingface_config(std::string_view json, std::string_view path);

/// The numbers of layers as config.json names them, and RoPE. Failures stick in `fields`; settings nobody would honour
/// are refused.
void read_layer_numbers(config_fields& fields, hyperparameters& numbers);

}  // namespace tandem::model

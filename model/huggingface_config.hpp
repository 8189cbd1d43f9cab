#pragma once
/// config.json of a Hugging Face folder.

#include <string_view>

#include "core/result.hpp"
#include "model/architecture.hpp"
#include "model/hyperparameters.hpp"

namespace tandem::model {

struct huggingface_config {
  const architecture* shape = nullptr;
  hyperparameters numbers;
};
/// Errors: corrupt, unsupported (an architecture, a RoPE scaling or another setting nobody would honour).
result<huggingface_config> parse_huggingface_config(std::string_view json, std::string_view path);

}  // namespace tandem::model

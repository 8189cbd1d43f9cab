#pragma once
/// The hyperparameters inside a GGUF file.

#include "core/result.hpp"
#include "model/architecture.hpp"
#include "model/gguf_file.hpp"
#include "model/hyperparameters.hpp"

namespace tandem::model {

/// The file's architecture. Errors: corrupt, unsupported (names it and the supported ones).
result<const architecture*> read_gguf_architecture(const gguf_file& file);
/// Errors: corrupt, unsupported (an unknown RoPE scaling).
result<hyperparameters> read_gguf_numbers(const gguf_file& file, const architecture& shape);

}  // namespace tandem::model

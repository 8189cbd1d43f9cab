#pragma once
/// The tokenizer inside a GGUF file.

#include "core/result.hpp"
#include "model/gguf_file.hpp"
#include "text/tokenizer_spec.hpp"

namespace tandem::model {

/// Errors: corrupt, unsupported (names the tokenizer model or the pre-tokenizer).
result<text::tokenizer_spec> read_gguf_tokenizer(const gguf_file& file);

}  // namespace tandem::model

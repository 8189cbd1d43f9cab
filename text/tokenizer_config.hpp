#pragma once
/// What the files beside tokenizer.json add: named special tokens, BOS rule, end tokens, chat template.

#include <string_view>

#include "core/result.hpp"
#include "text/tokenizer.hpp"

namespace tandem::text {

/// Id of a piece as it is written in the file: added tokens first, then normal ones; kNoToken when there is none.
token_id find_piece(const tokenizer_spec& spec, std::string_view piece);

/// Fills the rest of a spec whose vocabulary is complete. Errors: corrupt, too_large.
result<void> read_tokenizer_config(const tokenizer_files& files, tokenizer_spec& spec);

}  // namespace tandem::text

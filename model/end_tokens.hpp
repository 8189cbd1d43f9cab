#pragma once
/// Tokens that end generation although the file does not say so.

#include "text/tokenizer_spec.hpp"

namespace tandem::model {

/// Adds control tokens with a well-known ending name (<|im_end|>, <|endoftext|>, …) to spec.end_tokens: files often
/// declare only one of them. Sorts, removes doubles.
void add_named_end_tokens(text::tokenizer_spec& spec);

}  // namespace tandem::model

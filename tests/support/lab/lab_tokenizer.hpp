#pragma once
/// A tokenizer for the shadow model's vocabulary: one letter per token.

#include <memory>
#include <vector>

#include "text/tokenizer.hpp"

namespace tandem::lab {

/// Tokens 0–25 are "a"–"z", 26–49 "A"–"X".
std::shared_ptr<const text::tokenizer> make_lab_tokenizer(std::vector<token_id> end_tokens = {});

}  // namespace tandem::lab

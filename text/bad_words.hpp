#pragma once
/// Texts as the token sequences that are not drawn. The same text from other tokens is not seen.

#include <span>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/result.hpp"
#include "text/tokenizer.hpp"

namespace tandem::text {

/// As vLLM: each word without leading spaces, as it stands where a text begins; and behind a space, when that gives as
/// many tokens and another first one. Error: invalid_argument (bad_words), a word of nothing but spaces.
result<std::vector<std::vector<token_id>>> encode_bad_words(const tokenizer& tokenizer,
                                                            std::span<const std::string> words);

}  // namespace tandem::text

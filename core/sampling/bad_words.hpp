#pragma once
/// Token sequences that must not occur in an output. Pure.

#include <cstddef>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"

namespace tandem {

/// Output tokens that the longest of the bad words looks back at.
std::size_t bad_word_reach(const sampling_params& params);

/// Bans the last token of each bad word whose other tokens are the last ones of `output`, as vLLM does. `output`:
/// output tokens before the row, at least the last bad_word_reach() of them.
void ban_bad_words(std::span<float> logits, const sampling_params& params, std::span<const token_id> output);

}  // namespace tandem

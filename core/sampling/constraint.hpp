#pragma once
/// What a grammar does to drafts and logits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/grammar.hpp"
#include "core/ids.hpp"

namespace tandem {

/// Words of a mask with a bit per token.
constexpr std::size_t mask_words(std::size_t vocabulary) {
  return (vocabulary + 31) / 32;
}

/// How many of `drafts` the grammar would take one after the other, up to the first that ends the output. The matcher
/// stays where it was.
std::size_t acceptable_prefix(grammar_matcher& matcher, std::span<const token_id> drafts);

/// Logits of tokens whose bit is 0 become -inf. False: none is left.
bool keep_masked(std::span<float> logits, std::span<const std::uint32_t> bits);

}  // namespace tandem

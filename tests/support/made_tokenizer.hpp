#pragma once
/// Tokenizers of made models: known bytes for every token.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "text/tokenizer_spec.hpp"

namespace tandem::test {

struct made_token {
  std::string bytes;  ///< the text of the token: raw bytes, or the name of a special token
  text::token_kind kind = text::token_kind::normal;
};

/// Pre-tokenizer "smollm".
struct made_tokenizer {
  std::vector<made_token> tokens;                           ///< by id
  std::vector<std::pair<std::string, std::string>> merges;  ///< raw bytes, by rank
  token_id bos = kNoToken;
  token_id eos = kNoToken;
  bool add_bos = false;
  std::string chat_template;  ///< empty = none

  token_id find(std::string_view bytes) const;  ///< or kNoToken
};

/// BYTES: ids 0 to 255 are the single bytes; then `extra_pieces` (no merge makes them: only a model can); then
/// <|im_start|>, <|im_end|> (eos) and <|endoftext|>. No merges, no BOS, a ChatML template.
made_tokenizer bytes_tokenizer(const std::vector<std::string>& extra_pieces = {});
/// Exactly these pieces as normal tokens; no specials, no end token.
made_tokenizer pieces_tokenizer(const std::vector<std::string>& pieces);

/// Raw bytes in GPT-2's byte-to-unicode alphabet.
std::string to_byte_alphabet(std::string_view bytes);

}  // namespace tandem::test

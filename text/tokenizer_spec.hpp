#pragma once
/// A tokenizer as its file describes it, before it is compiled. Filled in by parse_tokenizer_json (text/) or from GGUF
/// metadata (model/). Plain data.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.hpp"

namespace tandem::text {

enum class pre_tokenizer : std::uint8_t {
  smollm,  ///< GPT-2 pattern, digits one by one
  qwen2,   ///< qwen2's pattern; NFC first
};

enum class token_kind : std::uint8_t {
  normal,
  control,       ///< special, no text (skipped by skip_special_tokens)
  user_defined,  ///< added, matched before BPE, has text
  unused,        ///< padding rows of the vocabulary: never produced by encode, decode to nothing
};

struct tokenizer_spec {
  std::vector<std::string> pieces;   ///< by id; normal pieces in GPT-2's byte-to-unicode alphabet, others as plain text
  std::vector<token_kind> kinds;     ///< same length
  std::vector<std::pair<std::string, std::string>> merges;  ///< by rank
  pre_tokenizer pre = pre_tokenizer::smollm;
  bool normalize_nfc = false;
  token_id bos = kNoToken;
  token_id eos = kNoToken;
  token_id unknown = kNoToken;
  token_id padding = kNoToken;
  bool add_bos = false;
  std::vector<token_id> end_tokens;  ///< every token that ends generation, from all places that declare one; sorted
  std::string chat_template;         ///< Jinja source; empty = none
};

}  // namespace tandem::text

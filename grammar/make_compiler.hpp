#pragma once
/// The door to this folder.

#include <memory>
#include <string>
#include <vector>

#include "core/grammar.hpp"
#include "core/ids.hpp"

namespace tandem {

/// What the tokens of a model say.
struct grammar_vocabulary {
  std::vector<std::string> bytes;  ///< by id, as many as the model has logits; empty: never part of an output
  std::vector<token_id> end_tokens;
};

/// Null: built without structured output (TANDEM_GRAMMAR=OFF).
std::shared_ptr<const grammar_compiler> make_grammar_compiler(grammar_vocabulary vocabulary);

}  // namespace tandem

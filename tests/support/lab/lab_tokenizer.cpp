#include "tests/support/lab/lab_tokenizer.hpp"

#include <string>
#include <utility>

#include "core/assert.hpp"
#include "tests/sim/shadow_model.hpp"

namespace tandem::lab {

std::shared_ptr<const text::tokenizer> make_lab_tokenizer(std::vector<token_id> end_tokens) {
  text::tokenizer_spec spec;
  for (token_id id = 0; id < sim::kVocabulary; ++id) {
    const char letter = static_cast<char>(id < 26 ? 'a' + id : 'A' + id - 26);
    spec.pieces.emplace_back(1, letter);
    spec.kinds.push_back(text::token_kind::normal);
  }
  spec.end_tokens = std::move(end_tokens);
  auto made = text::tokenizer::make(std::move(spec));
  TANDEM_ASSERT(made);
  return *made;
}

}  // namespace tandem::lab

#include "model/end_tokens.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem::model {
namespace {

// Names that end a turn or a text in the families served here.
constexpr std::array<std::string_view, 5> kEndPieces{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>",
                                                     "<|eom_id|>"};

}  // namespace

void add_named_end_tokens(text::tokenizer_spec& spec) {
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.kinds[id] != text::token_kind::control) continue;
    const bool ends = std::find(kEndPieces.begin(), kEndPieces.end(), spec.pieces[id]) != kEndPieces.end();
    if (ends) spec.end_tokens.push_back(static_cast<token_id>(id));
  }
  std::sort(spec.end_tokens.begin(), spec.end_tokens.end());
  spec.end_tokens.erase(std::unique(spec.end_tokens.begin(), spec.end_tokens.end()), spec.end_tokens.end());
}

}  // namespace tandem::model

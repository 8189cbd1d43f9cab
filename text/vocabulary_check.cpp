#include <algorithm>
#include <string>

#include "text/tokenizer.hpp"

namespace tandem::text {

result<void> check_same_vocabulary(const tokenizer& target, const tokenizer& draft) {
  const token_id shared = std::min(target.size(), draft.size());
  for (token_id id = 0; id < shared; ++id) {
    const auto at = static_cast<std::size_t>(id);
    const token_kind target_kind = target.spec().kinds[at];
    const token_kind draft_kind = draft.spec().kinds[at];
    if (target_kind == token_kind::unused || draft_kind == token_kind::unused) continue;
    const bool same = target.token_bytes(id, false) == draft.token_bytes(id, false) &&
                      (target_kind == token_kind::control) == (draft_kind == token_kind::control);
    if (!same) {
      return fail(error_code::invalid_argument,
                  "The draft model's vocabulary differs from the target's at token " + std::to_string(id) + " (\"" +
                      std::string(target.decode({&id, 1}, false)) + "\" and \"" +
                      std::string(draft.decode({&id, 1}, false)) + "\"); choose a draft with the target's tokenizer.",
                  "draft_model");
    }
  }
  return {};
}

}  // namespace tandem::text

#include "core/sampling/bad_words.hpp"

#include <algorithm>
#include <limits>

#include "core/assert.hpp"

namespace tandem {

std::size_t bad_word_reach(const sampling_params& params) {
  std::size_t reach = 0;
  for (const auto& word : params.bad_words) reach = std::max(reach, word.size() - 1);
  return reach;
}

void ban_bad_words(std::span<float> logits, const sampling_params& params, std::span<const token_id> output) {
  for (const auto& word : params.bad_words) {
    TANDEM_ASSERT(!word.empty());
    const auto before = std::span(word).first(word.size() - 1);
    if (before.size() > output.size()) continue;
    const auto last = output.last(before.size());
    if (!std::equal(before.begin(), before.end(), last.begin())) continue;
    const token_id id = word.back();
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) continue;
    logits[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace tandem

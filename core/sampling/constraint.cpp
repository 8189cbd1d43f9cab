#include "core/sampling/constraint.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "core/sampling/row_kernels.hpp"

namespace tandem {

std::size_t acceptable_prefix(grammar_matcher& matcher, std::span<const token_id> drafts) {
  std::size_t taken = 0;
  while (taken < drafts.size() && !matcher.has_ended() && matcher.accept(drafts[taken])) ++taken;
  matcher.rewind(static_cast<std::int32_t>(taken));
  return taken;
}

bool keep_masked(std::span<float> logits, std::span<const std::uint32_t> bits) {
  constexpr std::size_t kWordBits = 32;
  TANDEM_ASSERT(bits.size() == mask_words(logits.size()));
  for (std::size_t word = 0; word < bits.size(); ++word) {
    const std::size_t first = word * kWordBits;
    const auto part = logits.subspan(first, std::min(kWordBits, logits.size() - first));
    const std::uint32_t kept = bits[word];
    if (kept == 0) {
      std::fill(part.begin(), part.end(), row::kMinusInfinity);
    } else if (kept != ~std::uint32_t{0}) {
      for (std::size_t bit = 0; bit < part.size(); ++bit)
        if ((kept >> bit & 1U) == 0) part[bit] = row::kMinusInfinity;
    }
  }
  return row::largest(logits) > row::kMinusInfinity;
}

}  // namespace tandem

#include "actors/suffix_source.hpp"

#include <algorithm>
#include <vector>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

constexpr std::size_t kContext = limits::kMaxSuffixContext;

/// The end of one sequence's text: no more of it can matter.
class tail_of_text final : public drafting_text {
 public:
  tail_of_text(suffix_statistics& statistics, std::uint64_t salt) : statistics_(statistics), salt_(salt) {}

  void append(std::span<const token_id> tokens, std::int32_t unlearned) override {
    const std::size_t told = tokens.size() - static_cast<std::size_t>(unlearned);
    for (std::size_t i = told > kContext ? told - kContext : 0; i < tokens.size(); ++i) {
      if (i >= told) statistics_.learn(salt_, tail_, tokens[i]);
      if (tail_.size() == 2 * kContext) tail_.erase(tail_.begin(), tail_.end() - kContext);
      tail_.push_back(tokens[i]);
    }
  }

  ticket::row propose(std::int32_t k, const drafts_by_evidence& most) override {
    auto found = statistics_.propose(salt_, tail_, k);
    const evidence_class evidence = evidence_of_probability(found.first_probability);
    const auto allowed = static_cast<std::size_t>(std::max<std::int32_t>(0, most[evidence]));
    if (found.tokens.size() > allowed) found.tokens.resize(allowed);
    return {std::move(found.tokens), {}, evidence};
  }

 private:
  suffix_statistics& statistics_;
  std::uint64_t salt_;
  std::vector<token_id> tail_;  // at most 2 · kContext
};

}  // namespace

std::unique_ptr<drafting_text> suffix_source::begin(const slot_opening& opening) {
  return std::make_unique<tail_of_text>(statistics_, opening.salt);
}

void suffix_source::learn(const outputs_closed& outputs) {
  for (const outputs_closed::entry& output : outputs.entries) {
    TANDEM_ASSERT(output.unlearned >= 0 && static_cast<std::size_t>(output.unlearned) <= output.tokens.size());
    const std::span<const token_id> text(output.tokens);
    for (std::size_t i = text.size() - static_cast<std::size_t>(output.unlearned); i < text.size(); ++i)
      statistics_.learn(output.salt, text.first(i), text[i]);
  }
}

}  // namespace tandem

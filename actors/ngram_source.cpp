#include "actors/ngram_source.hpp"

#include <algorithm>

#include "core/speculation/ngram_index.hpp"

namespace tandem {
namespace {

class indexed_text final : public drafting_text {
 public:
  explicit indexed_text(ngram_source::options options) : index_(options.min_ngram, options.max_ngram) {}

  void append(std::span<const token_id> tokens, std::int32_t) override { index_.append(tokens); }

  ticket::row propose(std::int32_t k, const drafts_by_evidence& most) override {
    const auto found = index_.find();
    const evidence_class evidence = evidence_of_match(found.length);
    return {index_.continue_from(found, std::min<std::int32_t>(k, most[evidence])), {}, evidence};
  }

 private:
  ngram_index index_;
};

}  // namespace

std::unique_ptr<drafting_text> ngram_source::begin(const slot_opening&) {
  return std::make_unique<indexed_text>(options_);
}

}  // namespace tandem

#pragma once
/// Drafts from the sequence's own text: what followed the last repetition of its end.

#include <cstdint>
#include <memory>

#include "actors/text_source.hpp"

namespace tandem {

class ngram_source final : public text_source {
 public:
  struct options {
    std::int32_t min_ngram = 2;
    std::int32_t max_ngram = 5;
  };
  explicit ngram_source(options opts) : options_(opts) {}

 protected:
  std::unique_ptr<drafting_text> begin(const slot_opening& opening) override;

 private:
  options options_;
};

}  // namespace tandem

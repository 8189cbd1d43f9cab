#pragma once
/// Drafts from code that is not ours: a program's own source, asked on one thread that belongs to it.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "actors/text_source.hpp"

namespace tandem {

/// One question to a program's own source.
struct custom_question {
  std::uint64_t sequence = 0;        ///< the same number: the same sequence, longer
  std::span<const token_id> tokens;  ///< all known ones, prompt first; valid during the call
  std::int32_t prompt_length = 0;
  std::int32_t k = 0;  ///< drafts wanted, at least 1
};

/// May throw and may be slow: then there are no drafts. Called on one thread at a time.
class custom_drafts {
 public:
  virtual ~custom_drafts() = default;
  virtual std::vector<token_id> propose(const custom_question& question) = 0;
};

/// What went wrong in a program's own source, for the metrics.
enum class draft_fault : std::uint8_t { exception, late, unknown_token };

class custom_source final : public text_source {
 public:
  struct options {
    std::shared_ptr<custom_drafts> drafts;
    std::int32_t vocabulary_size = 0;  ///< of the model: an id outside it and all behind it are dropped
    std::function<void(draft_fault)> on_fault;
  };
  explicit custom_source(options opts) : options_(std::move(opts)) {}

 protected:
  std::unique_ptr<drafting_text> begin(const slot_opening& opening) override;

 private:
  options options_;
  std::uint64_t sequences_begun_ = 0;
};

}  // namespace tandem

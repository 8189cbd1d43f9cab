#pragma once
/// Which draft source and how many drafts, per sequence and step. The scheduler asks; the policy answers. Fixed k here;
/// the adaptive cost model implements the same interface.

#include <array>
#include <cstdint>
#include <optional>

#include "core/request.hpp"

namespace tandem {

struct draft_choice {
  draft_method method = draft_method::none;
  std::int32_t k = 0;
};

/// What the policy may look at.
struct draft_question {
  const speculation_params* wanted = nullptr;          ///< the request's own wish
  std::array<bool, kDraftMethods> available{};         ///< sources alive and not busy, by draft_method
  std::int32_t sequences = 0;                          ///< that decode in this step
};

class speculation_policy {
 public:
  virtual ~speculation_policy() = default;
  virtual draft_choice choose(const draft_question& question) const = 0;
  /// After each verified proposal.
  virtual void observe(draft_method method, std::int32_t drafted, std::int32_t accepted) = 0;
};

/// The configured method and k unless the request says otherwise; 0 above `disable_by_batch_size` sequences.
class fixed_policy final : public speculation_policy {
 public:
  struct options {
    draft_method method = draft_method::none;
    std::int32_t k = 0;
    std::optional<std::int32_t> disable_by_batch_size;
  };
  explicit fixed_policy(options opts) : options_(opts) {}
  draft_choice choose(const draft_question& question) const override;
  void observe(draft_method, std::int32_t, std::int32_t) override {}

 private:
  options options_;
};

}  // namespace tandem

#pragma once
/// What the running batch did of late, for whoever watches. Numbers only: nothing of it tells whose request is which.

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "core/messages.hpp"

namespace tandem {

struct batch_view {
  struct step {
    std::int32_t rows = 0;
    std::int32_t prompt_tokens = 0;
    std::int32_t generated_tokens = 0;
    double step_seconds = 0;
    double device_seconds = 0;
    std::int32_t undrafted = 0;                         ///< sequences that decoded without drafts
    std::int32_t drafting = 0;                          ///< sequences for which drafts were asked
    std::vector<step_measured::speculation> sequences;  ///< the first of them, at most limits::kMaxShownSequences
  };
  std::optional<step> last;  ///< none before the first step
  // since the start
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generated_tokens = 0;
};

/// Thread-safe: the metrics actor takes steps in, any thread looks.
class batch_watch {
 public:
  void record(const step_measured& step);
  batch_view look() const;

 private:
  mutable std::mutex mutex_;
  batch_view view_;
};

}  // namespace tandem

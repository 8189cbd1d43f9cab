#include "actors/batch_view.hpp"

#include <algorithm>
#include <utility>

#include "config/edge_limits.hpp"

namespace tandem {

namespace {

batch_view::step shown_of(const step_measured& step) {
  batch_view::step shown{step.rows,
                         step.prompt_tokens,
                         step.generated_tokens,
                         step.step_seconds,
                         step.device_seconds,
                         step.undrafted,
                         static_cast<std::int32_t>(step.speculations.size()),
                         {}};
  const std::size_t count = std::min(step.speculations.size(), limits::kMaxShownSequences);
  shown.sequences.assign(step.speculations.begin(), step.speculations.begin() + static_cast<std::ptrdiff_t>(count));
  return shown;
}

}  // namespace

void batch_watch::record(const step_measured& step) {
  std::optional<batch_view::step> shown;
  if (step.rows > 0) shown = shown_of(step);
  const std::lock_guard lock(mutex_);
  view_.steps += shown ? 1 : 0;
  view_.prompt_tokens += static_cast<std::uint64_t>(step.prompt_tokens);
  view_.generated_tokens += static_cast<std::uint64_t>(step.generated_tokens);
  if (shown) view_.last = std::move(shown);
}

batch_view batch_watch::look() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

}  // namespace tandem

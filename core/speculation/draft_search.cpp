#include "core/speculation/draft_search.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace tandem {
namespace {

constexpr double kLeastGain = 0.02;  // a draft less likely than that pays nowhere

/// The next draft of one sequence under one evidence.
struct next_draft {
  double gain = 0;  // probability of being accepted
  std::size_t sequence = 0;
  std::size_t evidence = 0;
  std::int32_t place = 0;
};

/// Less urgent: a smaller gain; ties go to the earlier place, then the older sequence, so that the order is one.
bool later(const next_draft& a, const next_draft& b) {
  if (a.gain != b.gain) return a.gain < b.gain;
  if (a.place != b.place) return a.place > b.place;
  if (a.sequence != b.sequence) return a.sequence > b.sequence;
  return a.evidence > b.evidence;
}

class search {
 public:
  search(const cost_model& costs, const step_base& base, const std::vector<const draft_option*>& options)
      : costs_(costs), base_(base), options_(options), rows_(base.rows), own_(options.size(), 0.0) {
    found_.drafts.resize(options.size());
    found_.gain.resize(options.size());
    found_.tokens = base.tokens;
    found_.seconds = costs.step_seconds(base.rows);
  }

  drafts_found run() {
    fill_heap();
    std::vector<next_draft> taken;
    std::size_t best = 0;
    double best_tokens = found_.tokens;
    double best_seconds = found_.seconds;
    const std::size_t ahead = static_cast<std::size_t>(limits::kRowsWithoutGain) + options_.size();
    while (!heap_.empty() && taken.size() < best + ahead && rows_ - base_.rows < base_.most_rows) {
      taken.push_back(take());
      if (found_.tokens * best_seconds <= best_tokens * (found_.seconds)) continue;
      best = taken.size();
      best_tokens = found_.tokens;
      best_seconds = found_.seconds;
    }
    taken.resize(best);
    double best_rows = 0;
    for (const next_draft& draft : taken) {
      const draft_option& option = *options_[draft.sequence];
      best_rows += option.offers[draft.evidence];
      ++found_.drafts[draft.sequence][draft.evidence];
      found_.gain[draft.sequence] += option.offers[draft.evidence] * draft.gain;
    }
    found_.tokens = best_tokens;
    found_.rows = base_.rows + best_rows;
    found_.seconds = best_seconds;
    return std::move(found_);
  }

 private:
  void fill_heap() {
    for (std::size_t i = 0; i < options_.size(); ++i) {
      if (options_[i] == nullptr || options_[i]->most <= 0) continue;
      for (std::size_t evidence = 1; evidence < kEvidenceClasses; ++evidence) {
        const double gain = options_[i]->accepted[evidence][0];
        if (options_[i]->offers[evidence] > 0 && gain >= kLeastGain) heap_.push_back({gain, i, evidence, 0});
      }
    }
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  next_draft take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const next_draft draft = heap_.back();
    heap_.pop_back();
    const draft_option& option = *options_[draft.sequence];
    const double share = option.offers[draft.evidence];
    found_.seconds += share * row_seconds(draft) + source_seconds(draft, option);
    found_.tokens += share * draft.gain;
    rows_ += share;
    own_[draft.sequence] += share;
    const std::int32_t next = draft.place + 1;
    if (next < option.most) {
      const double gain = option.accepted[draft.evidence][static_cast<std::size_t>(next)];
      if (gain >= kLeastGain) {
        heap_.push_back({gain, draft.sequence, draft.evidence, next});
        std::push_heap(heap_.begin(), heap_.end(), later);
      }
    }
    return draft;
  }

  /// The row among those that the other sequences are expected to have, and this one's own up to it.
  double row_seconds(const next_draft& draft) const {
    const double before = rows_ - own_[draft.sequence] + draft.place;
    const double longer = costs_.step_seconds(before + 1) - costs_.step_seconds(before);
    return std::max(longer, base_.least_row_seconds) + base_.context * costs_.seconds_per_position();
  }

  double source_seconds(const next_draft& draft, const draft_option& option) {
    if (option.method == draft_method::draft_model) return forward_seconds(draft, option);
    const bool asked_already = std::exchange(asked_, true);
    return asked_already ? 0 : costs_.asking_seconds(option.method);
  }

  /// A further sequence in the forward that gives drafts of this place.
  double forward_seconds(const next_draft& draft, const draft_option& option) {
    double& rows = forward_rows_[static_cast<std::size_t>(draft.place)];
    const double before = costs_.forward_seconds(rows);
    rows += draft.place == 0 ? option.first_rows : 1;
    return costs_.forward_seconds(rows) - before + (draft.place == 0 ? option.once_seconds : 0);
  }

  const cost_model& costs_;
  const step_base& base_;
  const std::vector<const draft_option*>& options_;
  std::vector<next_draft> heap_;
  drafts_found found_;
  double rows_;
  std::vector<double> own_;  // expected draft rows, by sequence
  std::array<double, limits::kMaxDraftTokens> forward_rows_{};
  bool asked_ = false;
};

}  // namespace

drafts_found search_drafts(const cost_model& costs, const step_base& base,
                           const std::vector<const draft_option*>& options) {
  TANDEM_ASSERT(base.tokens > 0 && base.rows >= 1);
  return search(costs, base, options).run();
}

}  // namespace tandem

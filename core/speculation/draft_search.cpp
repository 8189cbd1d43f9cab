#include "core/speculation/draft_search.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/speculation/shared_depth.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem {
namespace {

constexpr double kLeastGain = 0.02;  // a draft less likely than that pays nowhere
constexpr double kDoubtOfRows =
    1.06;  // what is measured with noise is chosen where it looks cheap: rows cost a bit more
constexpr double kRounding = 1e-9;
constexpr std::int32_t kRowsWithoutGain = 16;  // looked ahead: a staircase in T(rows) no wider is crossed

/// The next draft of one sequence under one evidence.
struct next_draft {
  double gain = 0;  // probability of being accepted
  std::size_t sequence = 0;
  evidence_class evidence = kNothingOffered;
  std::int32_t place = 0;
};

/// The source among the options that costs forwards; none: there is none. Two are one too many.
draft_method computing_source(const std::vector<const draft_option*>& options) {
  draft_method found = draft_method::none;
  for (const draft_option* option : options) {
    if (option == nullptr || option->computing() == draft_method::none) continue;
    TANDEM_ASSERT(found == draft_method::none || found == option->computing());
    found = option->computing();
  }
  return found;
}

/// How often the source that computes is expected to be needed at all; at most once.
double share_that_computes(const std::vector<const draft_option*>& options) {
  double share = 0;
  for (const draft_option* option : options) {
    if (option != nullptr && option->computing() != draft_method::none)
      share += option->offers[option->computing_class()];
  }
  return std::min(1.0, share);
}

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
      : costs_(costs),
        base_(base),
        options_(options),
        computing_(computing_source(options)),
        share_(share_that_computes(options)) {}

  /// `depth`: forwards of the source that computes, one row of each paid in advance, as often as it is needed.
  drafts_found run(std::int32_t depth) {
    start(depth);
    const std::size_t best = best_prefix();
    taken_.resize(best);
    const std::vector<next_draft> keep = std::move(taken_);
    start(depth);
    for (const next_draft& draft : keep) take(draft);
    for (std::int32_t j = 0; j < depth; ++j) {
      if (forward_rows_[static_cast<std::size_t>(j)] == 0) found_.seconds -= share_ * forward_seconds(1);
    }
    return std::move(found_);
  }

 private:
  void start(std::int32_t depth) {
    depth_ = depth;
    found_ = {};
    found_.drafts.resize(options_.size());
    found_.gain.resize(options_.size());
    found_.tokens = base_.tokens;
    found_.rows = base_.rows;
    found_.seconds = costs_.step_seconds(base_.rows) + depth * share_ * forward_seconds(1);
    own_.assign(options_.size(), 0.0);
    forward_rows_.fill(0);
    asked_ = false;
    heap_.clear();
    taken_.clear();
    const double plain = base_.tokens / costs_.step_seconds(base_.rows);
    for (std::size_t i = 0; i < options_.size(); ++i) {
      if (options_[i] == nullptr) continue;
      const bool waits = catch_up_is_too_dear(*options_[i], depth, plain);
      for (evidence_class evidence = 0; evidence < kEvidenceClasses; ++evidence) {
        if (!waits || !computes(options_[i]->source_of(evidence))) push({0, i, evidence, 0});
      }
    }
  }

  /// Adds it to the heap, with its gain, if there is such a draft.
  void push(next_draft draft) {
    const draft_option& option = *options_[draft.sequence];
    std::int32_t most = option.most_of(draft.evidence);
    if (computes(option.source_of(draft.evidence))) most = std::min(most, depth_);
    if (draft.place >= most || option.offers[draft.evidence] <= 0) return;
    draft.gain = option.accepted[draft.evidence][static_cast<std::size_t>(draft.place)];
    if (draft.gain < kLeastGain) return;
    heap_.push_back(draft);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  next_draft pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const next_draft draft = heap_.back();
    heap_.pop_back();
    return draft;
  }

  bool has_room() const { return !heap_.empty() && found_.rows - base_.rows + 1 <= base_.most_rows + kRounding; }

  /// Takes the drafts in order, some beyond the best end; how many of taken_ are up to it.
  std::size_t best_prefix() {
    std::size_t best = 0;
    double best_tokens = found_.tokens;
    double best_seconds = found_.seconds;
    const std::size_t ahead = static_cast<std::size_t>(kRowsWithoutGain) + options_.size();
    while (has_room() && taken_.size() < best + ahead) {
      const next_draft draft = pop();
      take(draft);
      push({0, draft.sequence, draft.evidence, draft.place + 1});
      taken_.push_back(draft);
      if (found_.tokens * best_seconds <= best_tokens * found_.seconds) continue;
      best = taken_.size();
      best_tokens = found_.tokens;
      best_seconds = found_.seconds;
    }
    return best;
  }

  void take(const next_draft& draft) {
    const double seconds = price_of(draft);
    const draft_option& option = *options_[draft.sequence];
    const double share = option.offers[draft.evidence];
    found_.seconds += seconds;
    found_.tokens += share * draft.gain;
    found_.rows += share;
    found_.gain[draft.sequence] += share * draft.gain;
    ++found_.drafts[draft.sequence][draft.evidence];
    own_[draft.sequence] += share;
    const bool forwards = computes(option.source_of(draft.evidence));
    asked_ |= !forwards;
    if (forwards) forward_rows_[static_cast<std::size_t>(draft.place)] += share * joining_rows(draft);
  }

  double forward_seconds(double rows) const { return costs_.forward_seconds(computing_, rows); }

  double joining_rows(const next_draft& draft) const {
    return draft.place == 0 ? options_[draft.sequence]->first_rows : 1;
  }

  /// The row among those that the other sequences are expected to have and this one's own up to it; and the source.
  double price_of(const next_draft& draft) const {
    const draft_option& option = *options_[draft.sequence];
    const double before = found_.rows - own_[draft.sequence] + draft.place;
    const double longer = costs_.step_seconds(before + 1) - costs_.step_seconds(before);
    const double row = std::max(longer, base_.least_row_seconds) + base_.context * costs_.seconds_per_position();
    const double share = option.offers[draft.evidence];
    const double verified = kDoubtOfRows * share * row;
    const draft_method source = option.source_of(draft.evidence);
    if (!computes(source)) return verified + (asked_ ? 0 : costs_.asking_seconds(source));
    const double rows = forward_rows_[static_cast<std::size_t>(draft.place)];
    const double forward = forward_seconds(rows + joining_rows(draft)) - forward_seconds(std::max(1.0, rows));
    return verified + share * std::max(0.0, forward) + (draft.place == 0 ? option.once_seconds : 0);
  }

  const cost_model& costs_;
  const step_base& base_;
  const std::vector<const draft_option*>& options_;
  draft_method computing_;
  double share_;  // of steps in which it is needed
  std::int32_t depth_ = 0;
  std::vector<next_draft> heap_;
  std::vector<next_draft> taken_;
  drafts_found found_;
  std::vector<double> own_;  // expected draft rows, by sequence
  std::array<double, limits::kMaxDraftTokens> forward_rows_{};
  bool asked_ = false;
};

}  // namespace

draft_method draft_option::computing() const {
  if (fallback != draft_method::none) return fallback;
  return computes(method) ? method : draft_method::none;
}

double worth_of_class(const draft_option& option, evidence_class evidence, double price) {
  double worth = 0;
  for (std::int32_t place = 0; place < option.most_of(evidence); ++place) {
    const double gain = option.accepted[evidence][static_cast<std::size_t>(place)] - price;
    if (gain <= 0) break;
    worth += gain;
  }
  return worth;
}

draft_option cascade_of(const draft_option& first, const draft_option& second, double row, double forward) {
  TANDEM_ASSERT(!computes(first.method) && computes(second.method));
  draft_option both = first;
  both.fallback = second.method;
  both.fallback_most = second.most;
  both.accepted[kNothingOffered] = second.accepted[kNoOpinion];
  both.first_rows = second.first_rows;
  both.once_seconds = second.once_seconds;
  const double worth_of_second = worth_of_class(second, kNoOpinion, row + forward);
  for (evidence_class evidence = 1; evidence < kEvidenceClasses; ++evidence) {
    if (worth_of_class(first, evidence, row) >= worth_of_second) continue;
    both.offers[kNothingOffered] += std::exchange(both.offers[evidence], 0.0);
  }
  return both;
}

drafts_found search_drafts(const cost_model& costs, const step_base& base,
                           const std::vector<const draft_option*>& options) {
  TANDEM_ASSERT(base.tokens > 0 && base.rows >= 1);
  search all(costs, base, options);
  drafts_found without_model = all.run(0);
  step_base with_others = base;
  with_others.tokens = without_model.tokens;
  with_others.rows = without_model.rows;
  const std::int32_t depth = best_shared_depth(costs, with_others, options);
  if (depth == 0) return without_model;
  drafts_found with_model = all.run(depth);
  return with_model.tokens_per_second() > without_model.tokens_per_second() ? with_model : without_model;
}

}  // namespace tandem

#include "core/speculation/cost_model.hpp"

#include <algorithm>

#include "core/speculation/source_kind.hpp"

namespace tandem {
namespace {

constexpr double kPriorDraftShare = 0.3;  // a draft model's forward, of the target's
constexpr double kPriorHeadShare = 0.05;
constexpr double kKnownForwards = 1;  // weight of a row count from which on it is known by itself
constexpr double kShareRate = 0.1;
constexpr std::int32_t kTellingPrefillRows = 8;  // fewer say little about what a prompt's row costs
constexpr double kPrefillRate = 0.2;
constexpr double kAskingRate = 0.1;
constexpr double kSlowestWaitTaken = 4;  // times what was usual

}  // namespace

void cost_model::observe(const step_seen& step) {
  if (step.prefill_rows == 0) {
    target_.observe(step.decode_rows, step.seconds, static_cast<double>(step.context));
  } else if (step.prefill_rows >= kTellingPrefillRows) {
    const double others = target_.has_seen_anything() ? step_seconds(step.decode_rows) : 0;
    const double each = std::max(0.0, step.seconds - others) / step.prefill_rows;
    prefill_row_ += (prefill_row_ == 0 ? 1 : kPrefillRate) * (each - prefill_row_);
    target_.note_row_seconds(prefill_row_);
  }
  if (step.only_source == draft_method::none) return;
  const auto source = static_cast<std::size_t>(step.only_source);
  double& usual = asking_[source];
  if (!asked_[source]) {
    usual = step.ticket_wait_seconds;
    asked_[source] = true;
    return;
  }
  const double taken =
      usual > 0 ? std::min(step.ticket_wait_seconds, kSlowestWaitTaken * usual) : step.ticket_wait_seconds;
  usual += kAskingRate * (taken - usual);
}

per_method<row_time_curve> cost_model::curves() {
  const row_time_curve fresh{kPriorStepSeconds, kPriorRowShare};
  per_method<row_time_curve> all{fresh, fresh, fresh, fresh, fresh, fresh, fresh};
  return all;
}

double cost_model::forward_seconds(draft_method method, double rows) const {
  const row_time_curve& curve = forwards_[index_of(method)];
  if (curve.weight_at(rows) >= kKnownForwards) return curve.seconds(rows);
  const double learned = share_[index_of(method)];
  const double prior = kind_of(method) == source_kind::head ? kPriorHeadShare : kPriorDraftShare;
  return (learned > 0 ? learned : prior) * target_.seconds(rows);
}

double cost_model::drafts_seconds(const drafts_seen& drafts) const {
  double sum = forward_seconds(drafts.method, drafts.first_rows);
  for (const std::int32_t sequences : drafts.sequences_at) sum += forward_seconds(drafts.method, sequences);
  return sum;
}

void cost_model::learn_share(const drafts_seen& drafts) {
  double target = target_.seconds(drafts.first_rows);
  for (const std::int32_t sequences : drafts.sequences_at) target += target_.seconds(sequences);
  double& share = share_[index_of(drafts.method)];
  const double seen = drafts.seconds / target;
  share = share == 0 ? seen : share + kShareRate * (std::min(seen, kSlowestWaitTaken * share) - share);
}

/// The item's seconds are shared out over its forwards as the curve so far has them.
void cost_model::observe(const drafts_seen& drafts) {
  const double predicted = drafts_seconds(drafts);
  if (!(drafts.seconds > 0) || !(predicted > 0)) return;
  const double surprise = drafts.seconds / predicted;
  learn_share(drafts);
  struct forward {
    std::int32_t rows;
    double seconds;
  };
  std::vector<forward> forwards{{drafts.first_rows, forward_seconds(drafts.method, drafts.first_rows)}};
  for (const std::int32_t sequences : drafts.sequences_at)
    forwards.push_back({sequences, forward_seconds(drafts.method, sequences)});
  row_time_curve& curve = forwards_[index_of(drafts.method)];
  for (const forward& each : forwards) curve.observe(each.rows, each.seconds * surprise);
}

}  // namespace tandem

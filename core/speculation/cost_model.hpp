#pragma once
/// What steps and drafts cost on this device, learned from the real ones. Single-threaded.
///
/// T(rows) of the target comes from steps without prefill rows, for a prefill row has no logits and costs less; what a
/// prefill row costs is learned beside it. A draft model has a curve of its own: k drafts of n sequences are one
/// forward over the tokens it had not seen and k-1 over n rows each. A source that does not compute (`ngram`) costs the
/// wait for its ticket. What a forward of it takes with a number of rows that was not seen yet is its usual share of
/// what the target takes with as many. A head is like a draft model that takes in one token.

#include <cmath>

#include "core/speculation/policy.hpp"
#include "core/speculation/row_time_curve.hpp"

namespace tandem {

class cost_model {
 public:
  void observe(const step_seen& step);
  void observe(const drafts_seen& drafts);

  bool knows_steps() const { return target_.has_seen_anything(); }
  /// A step with so many rows that have logits.
  double step_seconds(double rows) const { return target_.seconds(rows); }
  /// A further position of context for one row.
  double seconds_per_position() const { return target_.seconds_per_position(); }
  /// A row of a prompt beside decoding ones; 0 until one was seen.
  double prefill_row_seconds() const { return prefill_row_; }
  /// Steps seen at that row count, decayed.
  double steps_seen_at(double rows) const { return target_.weight_at(rows); }

  /// Share by which step_seconds(rows) is likely to be wrong.
  double doubt_at(double rows) const { return target_.surprise() / std::sqrt(1 + target_.weight_at(rows)); }

  /// One forward of a source that computes.
  double forward_seconds(draft_method method, double rows) const;
  /// What asking a source costs whatever it answers.
  double asking_seconds(draft_method method) const { return asking_[static_cast<std::size_t>(method)]; }

 private:
  double drafts_seconds(const drafts_seen& drafts) const;
  void learn_share(const drafts_seen& drafts);
  static per_method<row_time_curve> curves();

  row_time_curve target_{kPriorStepSeconds, kPriorRowShare};
  per_method<double> share_{};                      ///< of a source's forwards in the target's; 0: none was seen
  per_method<row_time_curve> forwards_ = curves();  ///< of the sources that compute
  double prefill_row_ = 0;
  per_method<double> asking_{};
  per_method<bool> asked_{};

  static constexpr double kPriorStepSeconds = 0.01;
  static constexpr double kPriorRowShare = 0.1;
};

}  // namespace tandem

#pragma once
/// Seconds of one forward as a function of its rows, learned online. Single-threaded.
///
/// Piecewise linear over row buckets (each row count of its own up to 32, then eight an octave). A bucket is a decayed
/// mean that one slow step moves by no more than a factor of two; fast ones are taken as they are, for no accident
/// makes a step fast. What is asked for is made monotone (pool adjacent violators), goes on beyond the largest bucket
/// with the slope of its last doubling, and is a prior's shape until something was seen. Buckets not seen for long are
/// forgotten, so that one bad measurement is not believed for ever.
///
/// The prior is a roofline: rows are nearly free until computing them takes longer than reading the weights. What
/// computing a row takes can be told from prompts, long before a wide step was tried.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

class row_time_curve {
 public:
  /// Before anything is seen one row costs `prior_seconds`, each further one `prior_row_share` of that.
  row_time_curve(double prior_seconds, double prior_row_share);

  /// Monotone in rows; `rows` may be an expectation between two counts. 0 rows take 0 seconds.
  double seconds(double rows) const;
  /// `context`: positions attended to, over all rows. Values that are not positive and finite are ignored.
  void observe(double rows, double seconds, double context = 0);

  /// A step of many rows takes at least so long for each of them.
  void note_row_seconds(double seconds) { row_seconds_ = seconds; }

  /// Seconds a further position of context adds, over and above what `seconds` contains on average; ≥ 0.
  double seconds_per_position() const { return seconds_per_position_; }
  bool has_seen_anything() const { return !fitted_.empty(); }
  /// How far the bucket of that row count is known: decayed number of steps.
  double weight_at(double rows) const { return buckets_[bucket_below(rows)].weight; }
  /// Share by which a step's seconds differ from what was expected, on average: noise, or a curve not yet known.
  double surprise() const { return surprise_; }

 private:
  struct bucket {
    double rows = 0;
    double seconds = 0;
    double context = 0;
    double weight = 0;
  };
  struct point {
    double rows = 0;
    double seconds = 0;
  };
  std::size_t bucket_below(double rows) const;
  double shape(double rows, double one_row_seconds) const;
  double beyond(double rows) const;
  double between(double rows) const;
  void learn(bucket& at, double share, double seconds, double context);
  void learn_context(const bucket& at, double seconds, double context);
  void fade();
  void fit();

  double prior_seconds_;
  double prior_row_share_;
  double row_seconds_ = 0;       // 0: not known
  std::vector<bucket> buckets_;  // ascending rows
  std::vector<point> fitted_;    // of the buckets seen, monotone
  double seen_ = 0;
  double surprise_ = 0.05;
  double context_covariance_ = 0;
  double context_variance_ = 0;
  double seconds_per_position_ = 0;
};

}  // namespace tandem

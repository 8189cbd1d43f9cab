#include "core/speculation/row_time_curve.hpp"

#include <algorithm>
#include <cmath>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

constexpr double kSingleRows = 32;  // buckets of one row count each up to here
constexpr double kBucketsAnOctave = 8;
constexpr double kMostWeight = 48;  // a bucket's mean is over about that many steps
constexpr double kFadePerStep = 1.0 / 2000;
constexpr double kForgottenBelow = 0.1;     // weight
constexpr double kSlowestTaken = 2.0;       // times the prediction
constexpr double kSurePredictionSteps = 4;  // before that nothing is an outlier
constexpr double kSharedDrift = 0.02;       // of a step's surprise is the whole machine's
constexpr double kSurpriseRate = 0.02;      // in the long run; at first the plain mean
constexpr double kPriorSurpriseSteps = 4;   // the prior counts like that many
constexpr double kFlatRowShare = 0.02;  // of one row's step, for each further one that computing hides behind memory
constexpr double kPriorSlopeRows = 2;   // the prior's slope counts like that many rows of measured slope
constexpr double kContextMemory = 0.998;
constexpr double kContextPriorVariance = 1e6;  // positions²

}  // namespace

row_time_curve::row_time_curve(double prior_seconds, double prior_row_share)
    : prior_seconds_(prior_seconds), prior_row_share_(prior_row_share) {
  TANDEM_ASSERT(prior_seconds > 0 && prior_row_share >= 0);
  for (double rows = 1; rows <= kSingleRows; ++rows) buckets_.push_back({.rows = rows});
  const double factor = std::exp2(1 / kBucketsAnOctave);
  while (buckets_.back().rows < limits::kMaxBatchedTokens) buckets_.push_back({.rows = buckets_.back().rows * factor});
}

std::size_t row_time_curve::bucket_below(double rows) const {
  const auto above =
      std::upper_bound(buckets_.begin(), buckets_.end(), rows, [](double r, const bucket& b) { return r < b.rows; });
  return above == buckets_.begin() ? 0 : static_cast<std::size_t>(above - buckets_.begin() - 1);
}

/// What is believed of a step when one row takes that long.
double row_time_curve::shape(double rows, double one_row_seconds) const {
  if (row_seconds_ <= 0) return one_row_seconds * (1 + prior_row_share_ * (rows - 1));
  return std::max(one_row_seconds * (1 + kFlatRowShare * (rows - 1)), row_seconds_ * rows);
}

double row_time_curve::beyond(double rows) const {
  const point last = fitted_.back();
  const double further = rows - last.rows;
  const double one_row = fitted_.front().seconds;
  const double believed = (shape(rows, one_row) - shape(last.rows, one_row)) / further;
  const double span = last.rows - std::max(fitted_.front().rows, last.rows / 2);
  const double slope = span > 0 ? (last.seconds - between(last.rows - span)) / span : 0;
  const double blended = (span * slope + kPriorSlopeRows * believed) / (span + kPriorSlopeRows);
  return std::max(last.seconds + blended * further, row_seconds_ * rows);
}

double row_time_curve::between(double rows) const {
  const auto above =
      std::lower_bound(fitted_.begin(), fitted_.end(), rows, [](const point& p, double r) { return p.rows < r; });
  if (above == fitted_.begin()) return above->seconds;
  const point low = *(above - 1);
  const double share = (rows - low.rows) / (above->rows - low.rows);
  return low.seconds + share * (above->seconds - low.seconds);
}

double row_time_curve::seconds(double rows) const {
  if (rows <= 0) return 0;
  if (fitted_.empty()) return shape(std::max(1.0, rows), prior_seconds_);
  const point first = fitted_.front();
  if (rows <= first.rows) {
    return first.seconds * shape(std::max(1.0, rows), prior_seconds_) / shape(first.rows, prior_seconds_);
  }
  return rows <= fitted_.back().rows ? between(rows) : beyond(rows);
}

void row_time_curve::learn_context(const bucket& at, double seconds, double context) {
  if (at.weight < 2) return;
  const double further = context - at.context;
  const double longer = std::clamp(seconds - at.seconds, -at.seconds, at.seconds);
  context_covariance_ = kContextMemory * context_covariance_ + further * longer;
  context_variance_ = kContextMemory * context_variance_ + further * further;
  seconds_per_position_ = std::max(0.0, context_covariance_ / (context_variance_ + kContextPriorVariance));
}

void row_time_curve::learn(bucket& at, double share, double seconds, double context) {
  const double rate = share / (at.weight + share);
  at.seconds += rate * (seconds - at.seconds);
  at.context += rate * (context - at.context);
  at.weight = std::min(at.weight + share, kMostWeight);
}

void row_time_curve::fade() {
  for (bucket& at : buckets_) {
    at.weight *= 1 - kFadePerStep;
    if (at.weight < kForgottenBelow) at.weight = 0;
  }
}

void row_time_curve::observe(double rows, double measured, double context) {
  if (!(rows >= 1) || !(measured > 0) || !std::isfinite(measured)) return;
  const double predicted = seconds(rows);
  if (seen_ >= kSurePredictionSteps) measured = std::min(measured, kSlowestTaken * predicted);
  const std::size_t low = bucket_below(rows);
  const std::size_t high = std::min(low + 1, buckets_.size() - 1);
  const double gap = buckets_[high].rows - buckets_[low].rows;
  const double upper_share = gap > 0 ? std::min(1.0, (rows - buckets_[low].rows) / gap) : 0;
  const double low_seconds = measured * seconds(buckets_[low].rows) / predicted;
  const double high_seconds = measured * seconds(buckets_[high].rows) / predicted;
  if (seen_ >= kSurePredictionSteps) {
    const double rate = std::max(kSurpriseRate, 1 / (kPriorSurpriseSteps + seen_ - kSurePredictionSteps + 1));
    surprise_ += rate * (std::min(1.0, std::abs(measured / predicted - 1)) - surprise_);
    const double drift = 1 + kSharedDrift * (std::clamp(measured / predicted, 0.5, kSlowestTaken) - 1);
    for (bucket& at : buckets_) at.seconds *= drift;
  }
  learn_context(buckets_[upper_share < 0.5 ? low : high], measured, context);
  if (upper_share < 0.95) learn(buckets_[low], 1 - upper_share, low_seconds, context);
  if (upper_share > 0.05) learn(buckets_[high], upper_share, high_seconds, context);
  ++seen_;
  fade();
  fit();
}

/// Pool adjacent violators: the monotone curve nearest to the buckets' means, weighted.
void row_time_curve::fit() {
  struct pool {
    double sum;
    double weight;
    std::size_t points;
  };
  std::vector<pool> pools;
  fitted_.clear();
  for (const bucket& at : buckets_) {
    if (at.weight <= 0) continue;
    fitted_.push_back({at.rows, 0});
    pools.push_back({at.seconds * at.weight, at.weight, 1});
    while (pools.size() > 1) {
      const pool& last = pools.back();
      pool& before = pools[pools.size() - 2];
      if (before.sum * last.weight <= last.sum * before.weight) break;
      before = {before.sum + last.sum, before.weight + last.weight, before.points + last.points};
      pools.pop_back();
    }
  }
  std::size_t next = 0;
  for (const pool& each : pools) {
    for (std::size_t i = 0; i < each.points; ++i) fitted_[next++].seconds = each.sum / each.weight;
  }
}

}  // namespace tandem

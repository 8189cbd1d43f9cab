#include "tests/core/naive_sampling.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/assert.hpp"

namespace tandem::testing {
namespace {

constexpr double kBanned = -std::numeric_limits<double>::infinity();

bool contains(const std::vector<token_id>& ids, token_id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void normalise(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

double penalized_one(double logit, token_id id, const sampling_params& params, const naive_history& history) {
  for (const auto& [biased, bias] : params.logit_bias) {
    if (biased == id) logit += static_cast<double>(bias);
  }
  const auto output = history.tokens.begin() + static_cast<std::ptrdiff_t>(history.prompt_length);
  const auto in_output = static_cast<double>(std::count(output, history.tokens.end(), id));
  if (contains(history.tokens, id)) {
    const auto penalty = static_cast<double>(params.repetition_penalty);
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
  logit -= in_output * static_cast<double>(params.frequency_penalty);
  if (in_output > 0) logit -= static_cast<double>(params.presence_penalty);
  const auto generated = static_cast<std::int32_t>(history.tokens.size() - history.prompt_length);
  if (generated < params.min_tokens && contains(params.held_until_min_tokens, id)) return kBanned;
  if (!params.allowed_token_ids.empty() && !contains(params.allowed_token_ids, id)) return kBanned;
  return logit;
}

}  // namespace

std::vector<double> naive_penalized(std::vector<double> logits, const sampling_params& params,
                                    const naive_history& history) {
  for (std::size_t id = 0; id < logits.size(); ++id) {
    logits[id] =
        penalized_one(std::isnan(logits[id]) ? kBanned : logits[id], static_cast<token_id>(id), params, history);
  }
  return logits;
}

std::vector<double> naive_distribution(const std::vector<double>& penalized, const sampling_params& params) {
  std::vector<std::size_t> order(penalized.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return penalized[a] > penalized[b]; });
  std::vector<double> p(penalized.size(), 0.0);
  const double maximum = penalized[order[0]];
  if (params.temperature == 0.0F) {
    p[order[0]] = 1.0;
    return p;
  }
  for (std::size_t id = 0; id < p.size(); ++id) {
    p[id] = std::exp((penalized[id] - maximum) / static_cast<double>(params.temperature));
    if (p[id] < static_cast<double>(params.min_p)) p[id] = 0.0;
  }
  const std::size_t top_k = params.top_k > 0 ? static_cast<std::size_t>(params.top_k) : p.size();
  for (std::size_t place = top_k; place < p.size(); ++place) p[order[place]] = 0.0;
  normalise(p);
  double before = 0.0;
  for (const std::size_t id : order) {
    const double mass = p[id];
    if (params.top_p < 1.0F && before >= static_cast<double>(params.top_p)) p[id] = 0.0;
    before += mass;
  }
  normalise(p);
  return p;
}

double chi_square_p(const std::vector<double>& expected, const std::vector<std::int64_t>& observed) {
  TANDEM_ASSERT(expected.size() == observed.size());
  double statistic = 0;
  double pooled_expected = 0;
  double pooled_observed = 0;
  int cells = 0;
  const auto add = [&](double want, double seen) {
    statistic += (seen - want) * (seen - want) / want;
    ++cells;
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto seen = static_cast<double>(observed[i]);
    if (expected[i] <= 0.0 && observed[i] > 0) return 0.0;
    if (expected[i] >= 5.0) {
      add(expected[i], seen);
    } else {
      pooled_expected += expected[i];
      pooled_observed += seen;
    }
  }
  if (pooled_expected > 0.5) add(pooled_expected, pooled_observed);
  if (cells < 2) return 1.0;
  return boost::math::gamma_q(0.5 * (cells - 1), 0.5 * statistic);
}

}  // namespace tandem::testing

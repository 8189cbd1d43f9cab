#include "core/sampling/distribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/assert.hpp"
#include "core/sampling/row_kernels.hpp"
#include "core/sampling/selection.hpp"

namespace tandem {
namespace {

bool limits_top_k(const sampling_params& params, std::size_t vocabulary) {
  return params.top_k > 0 && static_cast<std::size_t>(params.top_k) < vocabulary;
}

// Finite for every temperature above 0, so that a distance of 0 stays 0.
float scale_of(const sampling_params& params) {
  return static_cast<float>(std::min(1.0 / static_cast<double>(params.temperature), 1e38));
}

// One row on its way through the filters. `weights[i]` = exp((logit - maximum) / temperature) of chosen[i],
// unnormalised.
struct filtered_row {
  float maximum = 0;
  float scale = 1;
  std::vector<row::scored_id> chosen;
  std::vector<float> weights;

  float weight(float logit) const { return row::exp_nonpositive((logit - maximum) * scale); }
};

void weigh(filtered_row& filtered) {
  filtered.weights.clear();
  for (const row::scored_id& entry : filtered.chosen) filtered.weights.push_back(filtered.weight(entry.logit));
  // Below exp(-87) a probability is 0: not a candidate.
  while (!filtered.weights.empty() && filtered.weights.back() <= 0.0F) {
    filtered.weights.pop_back();
    filtered.chosen.pop_back();
  }
}

double total(const std::vector<float>& weights) {
  double sum = 0;
  for (const float weight : weights) sum += static_cast<double>(weight);
  return sum;
}

// Keeps the shortest prefix whose weight reaches `mass`; false when all of them do not.
bool cut_at_mass(filtered_row& filtered, double mass) {
  double sum = 0;
  for (std::size_t i = 0; i < filtered.weights.size(); ++i) {
    sum += static_cast<double>(filtered.weights[i]);
    if (sum < mass) continue;
    filtered.weights.resize(i + 1);
    filtered.chosen.resize(i + 1);
    return true;
  }
  return false;
}

// In id order, not weighed yet.
void collect_within(std::span<const float> logits, float bound, filtered_row& filtered) {
  std::vector<token_id> ids;
  row::collect_at_least(logits, filtered.maximum, filtered.scale, bound, ids);
  filtered.chosen.clear();
  filtered.chosen.reserve(ids.size());
  for (const token_id id : ids) filtered.chosen.push_back({row::cleaned(logits[static_cast<std::size_t>(id)]), id});
}

void sort_and_weigh(filtered_row& filtered) {
  std::sort(filtered.chosen.begin(), filtered.chosen.end(), row::comes_before);
  weigh(filtered);
}

void choose_within(std::span<const float> logits, float bound, filtered_row& filtered) {
  collect_within(logits, bound, filtered);
  sort_and_weigh(filtered);
}

// Drops unsorted candidates, all within `bound` of the maximum, that lie below the nucleus: their weights are summed in
// slices of equal distance, nearest first, until they reach the mass. False when all together do not.
bool drop_below_mass(filtered_row& filtered, float bound, double mass) {
  constexpr std::size_t kSlices = 256;
  std::array<double, kSlices> weights{};
  const auto slice_of = [&](float logit) {
    const float share = (logit - filtered.maximum) * filtered.scale / bound;  // 0 at the maximum, 1 at the bound
    return static_cast<std::size_t>(share * static_cast<float>(kSlices - 1));
  };
  for (const row::scored_id& entry : filtered.chosen)
    weights[slice_of(entry.logit)] += static_cast<double>(filtered.weight(entry.logit));
  double sum = 0;
  std::size_t last = 0;
  for (; last < kSlices; ++last) {
    sum += weights[last];
    if (sum >= mass) break;
  }
  if (last == kSlices) return false;
  std::erase_if(filtered.chosen, [&](const row::scored_id& entry) { return slice_of(entry.logit) > last; });
  return true;
}

// Top-p alone: the nucleus is near the maximum, so look there first and widen only as far as its mass is missing. What
// is cut is a prefix of the sorted row, the same from however many candidates. The sums before the sort are in another
// order: they only tell where to look, with some room for rounding.
void choose_nucleus(std::span<const float> logits, double top_p, filtered_row& filtered) {
  constexpr std::array<float, 3> kBounds{-3.0F, -12.0F, -87.0F};
  constexpr double kRoom = 1.0 + 1e-9;
  const double mass = top_p * row::sum_exp(logits, filtered.maximum, filtered.scale);
  for (const float bound : kBounds) {
    collect_within(logits, bound, filtered);
    if (!drop_below_mass(filtered, bound, mass * kRoom)) continue;
    sort_and_weigh(filtered);
    if (cut_at_mass(filtered, mass)) return;
  }
  choose_within(logits, kBounds.back(), filtered);
  cut_at_mass(filtered, mass);
}

float min_p_bound(const sampling_params& params) {
  return params.min_p > 0.0F ? static_cast<float>(std::log(static_cast<double>(params.min_p))) : -87.0F;
}

void cut_below_min_p(const sampling_params& params, filtered_row& filtered) {
  const float bound = min_p_bound(params);
  const auto below = [&](const row::scored_id& entry) {
    return (entry.logit - filtered.maximum) * filtered.scale < bound;
  };
  const auto first = std::find_if(filtered.chosen.begin(), filtered.chosen.end(), below);
  filtered.chosen.erase(first, filtered.chosen.end());
}

// Requires a row with some logit above -inf and a temperature above 0.
filtered_row filter_row(std::span<const float> logits, const sampling_params& params, float maximum) {
  filtered_row filtered{maximum, scale_of(params), {}, {}};
  const auto top_p = static_cast<double>(params.top_p);
  if (limits_top_k(params, logits.size())) {
    // min-p keeps a prefix of the sorted row, so it commutes with top-k.
    filtered.chosen = row::select_largest(logits, static_cast<std::size_t>(params.top_k));
    cut_below_min_p(params, filtered);
    weigh(filtered);
  } else if (params.min_p > 0.0F) {
    choose_within(logits, min_p_bound(params), filtered);
  } else {
    choose_nucleus(logits, top_p, filtered);
    return filtered;
  }
  if (top_p < 1.0) cut_at_mass(filtered, top_p * total(filtered.weights));
  return filtered;
}

std::vector<candidate> certain(token_id id) {
  return {candidate{id, 0.0F, 1.0F}};
}

std::vector<candidate> whole_row(std::span<const float> logits, float maximum, float scale) {
  const double sum = row::sum_exp(logits, maximum, scale);
  std::vector<candidate> candidates;
  candidates.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float logit = row::cleaned(logits[i]);
    const float weight = row::exp_nonpositive((logit - maximum) * scale);
    if (weight <= 0.0F) continue;
    candidates.push_back(
        {static_cast<token_id>(i), logit * scale, static_cast<float>(static_cast<double>(weight) / sum)});
  }
  return candidates;
}

}  // namespace

bool has_filters(const sampling_params& params, std::size_t vocabulary) {
  return limits_top_k(params, vocabulary) || params.top_p < 1.0F || params.min_p > 0.0F;
}

std::vector<candidate> filtered_distribution(std::span<const float> penalized_logits, const sampling_params& params) {
  const float maximum = row::largest(penalized_logits);
  if (params.temperature <= 0.0F || maximum == row::kMinusInfinity) return certain(greedy_token(penalized_logits));
  if (!has_filters(params, penalized_logits.size())) return whole_row(penalized_logits, maximum, scale_of(params));

  const filtered_row filtered = filter_row(penalized_logits, params, maximum);
  const double sum = total(filtered.weights);
  std::vector<candidate> candidates;
  candidates.reserve(filtered.chosen.size());
  for (std::size_t i = 0; i < filtered.chosen.size(); ++i) {
    const auto probability = static_cast<float>(static_cast<double>(filtered.weights[i]) / sum);
    candidates.push_back({filtered.chosen[i].id, filtered.chosen[i].logit * filtered.scale, probability});
  }
  return candidates;
}

float unfiltered_probability(std::span<const float> penalized_logits, const sampling_params& params, token_id id) {
  if (id < 0 || static_cast<std::size_t>(id) >= penalized_logits.size()) return 0.0F;
  const float maximum = row::largest(penalized_logits);
  if (params.temperature <= 0.0F || maximum == row::kMinusInfinity)
    return id == greedy_token(penalized_logits) ? 1.0F : 0.0F;
  const float scale = scale_of(params);
  const float logit = row::cleaned(penalized_logits[static_cast<std::size_t>(id)]);
  const auto weight = static_cast<double>(row::exp_nonpositive((logit - maximum) * scale));
  return static_cast<float>(weight / row::sum_exp(penalized_logits, maximum, scale));
}

token_id greedy_token(std::span<const float> penalized_logits) {
  TANDEM_ASSERT(!penalized_logits.empty());
  const float maximum = row::largest(penalized_logits);
  // Nothing but -inf and NaN: there is no right answer, the smallest id is a fixed one.
  if (maximum == row::kMinusInfinity) return 0;
  return static_cast<token_id>(row::first_at_least(penalized_logits, maximum));
}

token_id draw_coupled(std::span<const float> penalized_logits, const sampling_params& params, std::uint64_t key,
                      std::int64_t position) {
  const token_id greedy = greedy_token(penalized_logits);
  if (params.temperature <= 0.0F) return greedy;
  const float maximum = row::cleaned(penalized_logits[static_cast<std::size_t>(greedy)]);
  if (maximum == row::kMinusInfinity) return greedy;

  // log p differs from (logit - maximum) / temperature by a constant of the row, so no path needs to normalise.
  const row::perturbation noise{maximum, params.temperature, key, position};
  row::perturbed_best best{greedy, row::perturbed_score(noise, greedy, maximum)};
  if (!has_filters(params, penalized_logits.size())) {
    row::perturbed_argmax(penalized_logits, noise, best);
    return best.id;
  }
  for (const row::scored_id& entry : filter_row(penalized_logits, params, maximum).chosen) {
    best.offer(entry.id, row::perturbed_score(noise, entry.id, entry.logit));
  }
  return best.id;
}

}  // namespace tandem

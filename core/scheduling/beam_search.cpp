#include "core/scheduling/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {

beam_search::beam_search(beam_settings settings) : settings_(std::move(settings)), live_(1) {
  TANDEM_ASSERT(settings_.width >= 1 && settings_.width <= limits::kMaxChoices);
  TANDEM_ASSERT(settings_.prompt_length >= 1 && settings_.max_tokens >= 1);
}

bool beam_search::ends(token_id token) const {
  return std::binary_search(settings_.end_tokens.begin(), settings_.end_tokens.end(), token);
}

/// As vLLM: an end token in last place does not count, also where it ends nothing.
double beam_search::score(const beam_hypothesis& hypothesis) const {
  auto length = settings_.prompt_length + static_cast<std::int32_t>(hypothesis.tokens.size());
  if (!hypothesis.tokens.empty() && ends(hypothesis.tokens.back())) --length;
  return hypothesis.logprob / std::pow(length, static_cast<double>(settings_.params.length_penalty));
}

/// A sum only falls; what it is divided by grows or falls with the length, so one of the two ends is the bound.
double beam_search::highest_reachable(const beam_hypothesis& hypothesis) const {
  const auto penalty = static_cast<double>(settings_.params.length_penalty);
  const auto shortest = settings_.prompt_length + static_cast<std::int32_t>(hypothesis.tokens.size());
  const auto longest = settings_.prompt_length + settings_.max_tokens;
  return std::max(hypothesis.logprob / std::pow(shortest, penalty), hypothesis.logprob / std::pow(longest, penalty));
}

bool beam_search::over() const {
  if (live_.empty() || static_cast<std::int32_t>(live_.front().tokens.size()) >= settings_.max_tokens) return true;
  if (static_cast<std::int32_t>(complete_.size()) < settings_.width) return false;
  if (settings_.params.early_stopping) return true;
  const double worst = score(complete_.back());
  return std::none_of(live_.begin(), live_.end(), [&](const auto& each) { return highest_reachable(each) > worst; });
}

void beam_search::keep_complete(beam_hypothesis hypothesis) {
  hypothesis.complete = true;
  const double own = score(hypothesis);
  const auto place =
      std::find_if(complete_.begin(), complete_.end(), [&](const auto& each) { return score(each) < own; });
  complete_.insert(place, std::move(hypothesis));
  if (static_cast<std::int32_t>(complete_.size()) > settings_.width) complete_.pop_back();
}

beam_hypothesis beam_search::child_of(const beam_hypothesis& parent, const extension& by,
                                      const beam_candidates& candidates) const {
  beam_hypothesis child = parent;
  child.tokens.push_back(by.token);
  child.logprob = by.logprob;
  if (settings_.top_logprobs < 0) return child;
  const float own = candidates[static_cast<std::size_t>(by.rank)].second;
  const auto shown = std::min(candidates.size(), static_cast<std::size_t>(settings_.top_logprobs));
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(shown);
  child.logprobs.push_back({by.token, own, by.rank + 1, {candidates.begin(), end}});
  return child;
}

/// Completes what an end token completes; = the best of the others, best first.
std::vector<beam_search::extension> beam_search::extend(std::span<const beam_candidates> candidates) {
  std::vector<extension> going_on;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const beam_candidates& tokens = candidates[static_cast<std::size_t>(live_[i].lane)];
    const auto count = std::min<std::size_t>(tokens.size(), 2 * static_cast<std::size_t>(settings_.width));
    for (std::size_t rank = 0; rank < count; ++rank) {
      const auto& [token, logprob] = tokens[rank];
      const extension each{i, token, live_[i].logprob + static_cast<double>(logprob), static_cast<std::int32_t>(rank)};
      if (!settings_.ignore_eos && ends(token)) {
        keep_complete(child_of(live_[i], each, tokens));
      } else {
        going_on.push_back(each);
      }
    }
  }
  std::stable_sort(going_on.begin(), going_on.end(), [](const extension& a, const extension& b) {
    if (a.logprob != b.logprob) return a.logprob > b.logprob;
    return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
  });
  going_on.resize(std::min(going_on.size(), static_cast<std::size_t>(settings_.width)));
  return going_on;
}

/// The first child of a hypothesis stays in its lane; the others take lanes that nobody stays in.
std::vector<std::int32_t> beam_search::place(const std::vector<extension>& chosen) const {
  std::vector<bool> taken(static_cast<std::size_t>(settings_.width), false);
  std::vector<std::int32_t> lanes(chosen.size(), -1);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::int32_t own = live_[chosen[i].parent].lane;
    if (taken[static_cast<std::size_t>(own)]) continue;
    taken[static_cast<std::size_t>(own)] = true;
    lanes[i] = own;
  }
  for (std::int32_t& lane : lanes) {
    if (lane >= 0) continue;
    const auto free = std::find(taken.begin(), taken.end(), false);
    TANDEM_ASSERT(free != taken.end());
    *free = true;
    lane = static_cast<std::int32_t>(free - taken.begin());
  }
  return lanes;
}

std::vector<beam_step> beam_search::advance(std::span<const beam_candidates> candidates) {
  TANDEM_ASSERT(!over() && candidates.size() == static_cast<std::size_t>(settings_.width));
  const std::vector<extension> chosen = extend(candidates);
  const std::vector<std::int32_t> lanes = place(chosen);
  std::vector<beam_step> steps;
  std::vector<beam_hypothesis> next;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const beam_hypothesis& parent = live_[chosen[i].parent];
    steps.push_back({lanes[i], parent.lane, chosen[i].token});
    next.push_back(child_of(parent, chosen[i], candidates[static_cast<std::size_t>(parent.lane)]));
    next.back().lane = lanes[i];
  }
  live_ = std::move(next);
  return steps;
}

const beam_hypothesis* beam_search::in_lane(std::int32_t lane) const {
  const auto found = std::find_if(live_.begin(), live_.end(), [&](const auto& each) { return each.lane == lane; });
  return found == live_.end() ? nullptr : &*found;
}

std::vector<beam_hypothesis> beam_search::best() const {
  std::vector<beam_hypothesis> all = complete_;
  all.insert(all.end(), live_.begin(), live_.end());
  std::stable_sort(all.begin(), all.end(), [this](const auto& a, const auto& b) { return score(a) > score(b); });
  all.resize(std::min(all.size(), static_cast<std::size_t>(settings_.width)));
  return all;
}

}  // namespace tandem

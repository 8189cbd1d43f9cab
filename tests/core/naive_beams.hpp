#pragma once
/// Beam search as vLLM describes it, step by step over whole token lists and to the very end: what the real one is
/// compared with. Slow on purpose.

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "core/scheduling/beam_search.hpp"

namespace tandem::testing {

struct naive_beam {
  std::vector<token_id> tokens;
  double logprob = 0;
  bool complete = false;
};

inline std::vector<naive_beam> naive_beam_search(
    const beam_settings& settings, const std::function<beam_candidates(const std::vector<token_id>&)>& next) {
  const auto ends = [&](token_id token) {
    return std::find(settings.end_tokens.begin(), settings.end_tokens.end(), token) != settings.end_tokens.end();
  };
  std::vector<naive_beam> beams(1);
  std::vector<naive_beam> complete;
  for (std::int32_t step = 0; step < settings.max_tokens; ++step) {
    std::vector<naive_beam> all;
    for (const naive_beam& beam : beams) {
      beam_candidates candidates = next(beam.tokens);
      candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(2 * settings.width)));
      std::vector<naive_beam> children;
      for (const auto& [token, logprob] : candidates) {
        naive_beam child = beam;
        child.tokens.push_back(token);
        child.logprob += static_cast<double>(logprob);
        child.complete = !settings.ignore_eos && ends(token);
        (child.complete ? complete : children).push_back(std::move(child));
      }
      std::stable_sort(children.begin(), children.end(), [](const naive_beam& a, const naive_beam& b) {
        return a.logprob != b.logprob ? a.logprob > b.logprob : a.tokens.back() < b.tokens.back();
      });
      all.insert(all.end(), children.begin(), children.end());
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
    all.resize(std::min(all.size(), static_cast<std::size_t>(settings.width)));
    beams = std::move(all);
  }
  complete.insert(complete.end(), beams.begin(), beams.end());
  const auto score = [&](const naive_beam& beam) {
    const bool ended = !beam.tokens.empty() && ends(beam.tokens.back());
    const double length = settings.prompt_length + static_cast<double>(beam.tokens.size()) - (ended ? 1 : 0);
    return beam.logprob / std::pow(length, static_cast<double>(settings.params.length_penalty));
  };
  std::stable_sort(complete.begin(), complete.end(), [&](const auto& a, const auto& b) { return score(a) > score(b); });
  complete.resize(std::min(complete.size(), static_cast<std::size_t>(settings.width)));
  return complete;
}

}  // namespace tandem::testing

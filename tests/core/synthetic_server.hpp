#pragma once
/// A policy in a closed loop with a made device and made draft sources: step after step it chooses, seconds pass as the
/// device's curves say, drafts are accepted as the sources' probabilities say. A sequence that has ended makes room for
/// a new one. No models, no clocks; a seed replays.

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "core/speculation/acceptance_statistics.hpp"

namespace tandem::synthetic {

using row_seconds = std::function<double(double rows)>;

/// Memory-bound: the first `flat_rows` rows cost the same, then each adds its share.
row_seconds flat_then_linear(double seconds, double flat_rows);
/// Compute-bound: each further row adds `share` of the first one's seconds.
row_seconds linear(double seconds, double share);
/// Kernels that work on `tile` rows at once.
row_seconds staircase(double seconds, double tile, double share);

struct device {
  row_seconds target = linear(0.02, 0.2);
  row_seconds draft = linear(0.008, 0.1);
  double asking_seconds = 20e-6;  ///< an n-gram's ticket
  double noise = 0;               ///< standard deviation of the logarithm of a step's seconds
  double slow_steps = 0;          ///< share of the steps that take five times as long
};

/// Probabilities at a step: what is offered by evidence, and that a draft is accepted given that those before it are.
struct source {
  evidence_shares offers{};
  std::array<double, kEvidenceClasses> accepted{};
};
using source_at = std::function<source(std::int64_t step, std::size_t sequence)>;

/// A draft model with one acceptance probability.
source model(double accepted);
/// Text that repeats itself: a long match in `share` of the steps, accepted with that probability; else a short one in
/// half of the rest, which is chance.
source matches(double share, double accepted);

struct totals {
  double seconds = 0;
  double tokens = 0;
  std::int64_t steps = 0;
  std::int64_t asked = 0;         ///< proposals
  std::int64_t drafts_asked = 0;  ///< Σ k
  std::int64_t drafted = 0;
  double tokens_per_second() const { return tokens / seconds; }
};

inline constexpr std::int32_t kPromptTokens = 50;
inline constexpr std::int32_t kOutputTokens = 400;

class server {
 public:
  server(device made, source_at ngram, source_at draft_model, std::size_t sequences, std::uint64_t seed);

  totals run(speculation_policy& policy, std::int64_t steps);
  /// Tokens a second of as many steps without speculation, under the same disturbances.
  double plain_tokens_per_second(std::int64_t steps) const;

 private:
  struct live {
    sequence_acceptance acceptance;
    std::int32_t unseen = kPromptTokens;  ///< by the draft model
    std::int32_t length = kPromptTokens;
  };
  void step(speculation_policy& policy, totals& all);
  std::vector<draft_question> questions();
  double drafting(speculation_policy& policy, const std::vector<draft_choice>& choices,
                  const std::vector<bool>& falls_back);
  proposal_seen offer(std::size_t sequence, draft_method method, std::int32_t k, const drafts_by_evidence& most);
  double disturbance(std::int64_t step) const;
  double uniform();

  device device_;
  per_method<source_at> sources_;
  std::vector<live> sequences_;
  std::mt19937_64 random_;
  std::uint64_t seed_;
  std::int64_t step_ = 0;
};

}  // namespace tandem::synthetic

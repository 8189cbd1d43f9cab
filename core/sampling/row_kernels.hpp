#pragma once
/// Passes over one row of logits, compiled for several instruction sets that give bit-identical results: lanes are
/// explicit, nothing is fused or reassociated. Internal to core/sampling.
///
/// In all of them NaN counts as -inf and +inf as the largest finite float.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/ids.hpp"

namespace tandem::row {

enum class isa : std::uint8_t { portable, avx2, avx512 };
/// The widest this machine has, unless a test chose another.
isa current_isa();
void force_isa_for_test(isa wanted);
bool isa_supported(isa wanted);

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// NaN → -inf, +inf → the largest finite float.
inline float cleaned(float logit) {
  if (!(logit > kMinusInfinity)) return kMinusInfinity;
  return std::min(logit, std::numeric_limits<float>::max());
}

/// `wanted` ? then : otherwise, by integer masks: given a branch on a float comparison, compilers thread its jumps
/// through what follows and give up vectors.
[[gnu::always_inline]] inline float select(bool wanted, float then, float otherwise) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(wanted);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(then) & mask) |
                              (std::bit_cast<std::uint32_t>(otherwise) & ~mask));
}

/// exp(x) for x ≤ 0, relative error below 1e-6, 0 below -87. Cody-Waite reduction and a Taylor polynomial, so that
/// vector and scalar code agree bit for bit, which std::exp does not promise.
[[gnu::always_inline]] inline float exp_nonpositive(float x) {
  const bool in_range = (std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu) <= std::bit_cast<std::uint32_t>(87.0F);
  const float clamped = select(in_range, x, -87.0F);
  const float shifted = clamped * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: rounds to the nearest integer
  const float whole = shifted - 12582912.0F;
  const float rest = (clamped - whole * 0.693359375F) - whole * -2.12194440e-4F;
  float sum = 1.0F / 5040.0F;
  sum = sum * rest + 1.0F / 720.0F;
  sum = sum * rest + 1.0F / 120.0F;
  sum = sum * rest + 1.0F / 24.0F;
  sum = sum * rest + 1.0F / 6.0F;
  sum = sum * rest + 0.5F;
  sum = sum * rest + 1.0F;
  sum = sum * rest + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) + 127) << 23;
  const float value = sum * std::bit_cast<float>(exponent);
  return select(in_range, value, 0.0F);
}

/// Largest logit; -inf when there is none above.
float largest(std::span<const float> logits);
/// First id whose logit is at least `bound`; the row's size when there is none.
std::size_t first_at_least(std::span<const float> logits, float bound);
/// Σ exp((logit - maximum) * scale), the float terms summed in double over 16 fixed lanes.
double sum_exp(std::span<const float> logits, float maximum, float scale);
/// Ids whose (logit - maximum) * scale is at least `bound`, ascending.
void collect_at_least(std::span<const float> logits, float maximum, float scale, float bound,
                      std::vector<token_id>& into);

/// A perturbed argmax in progress: the best id so far, by score, ties to the smaller id.
struct perturbed_best {
  token_id id = kNoToken;
  double score = -std::numeric_limits<double>::infinity();
  void offer(token_id candidate, double candidate_score) {
    if (candidate_score > score || (candidate_score == score && candidate < id)) {
      id = candidate;
      score = candidate_score;
    }
  }
};
/// What the score of an id is made of: (logit - maximum) / temperature + gumbel(key, position, id), in double.
struct perturbation {
  float maximum = 0;
  float temperature = 1;
  std::uint64_t key = 0;
  std::int64_t position = 0;
};
double perturbed_score(const perturbation& noise, token_id id, float logit);
/// Offers to `best` every id that could still win. `best` must already hold some id of the row.
void perturbed_argmax(std::span<const float> logits, const perturbation& noise, perturbed_best& best);

}  // namespace tandem::row

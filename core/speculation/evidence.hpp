#pragma once
/// How sure a draft source is of a proposal before anybody has checked it: the class under which its acceptance is
/// learned, and by which the policy bounds its length.

#include <array>
#include <cstddef>
#include <cstdint>

#include "config/limits.hpp"

namespace tandem {

/// 0: nothing was offered. A source without a word of its own uses 1. `ngram` says 1 … 5 by the length of the match,
/// `suffix` by the probability of its first draft.
using evidence_class = std::uint8_t;
inline constexpr std::size_t kEvidenceClasses = 6;
inline constexpr evidence_class kNothingOffered = 0;
inline constexpr evidence_class kNoOpinion = 1;

/// Class of a match of that many tokens: up to 2, 4, 8, 16, or longer.
constexpr evidence_class evidence_of_match(std::int32_t match_tokens) {
  if (match_tokens <= 0) return kNothingOffered;
  evidence_class found = 1;
  for (std::int32_t most = 2; most < match_tokens && found + 1U < kEvidenceClasses; most *= 2) ++found;
  return found;
}

/// Class of a first draft that the source itself gives that probability.
constexpr evidence_class evidence_of_probability(double probability) {
  if (probability <= 0) return kNothingOffered;
  constexpr std::array kFrom{0.5, 0.7, 0.85, 0.95};
  evidence_class found = 1;
  for (const double least : kFrom) found = static_cast<evidence_class>(found + (probability >= least ? 1 : 0));
  return found;
}

/// Most drafts a source may offer, by its own evidence.
using drafts_by_evidence = std::array<std::int8_t, kEvidenceClasses>;

constexpr drafts_by_evidence same_for_all(std::int32_t drafts) {
  drafts_by_evidence most{};
  for (std::size_t c = 1; c < kEvidenceClasses; ++c) most[c] = static_cast<std::int8_t>(drafts);
  return most;
}

static_assert(limits::kMaxDraftTokens <= 127);

}  // namespace tandem

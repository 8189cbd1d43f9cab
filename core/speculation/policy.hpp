#pragma once
/// Which draft source and how many drafts, for all sequences of a step together. The scheduler asks; the policy
/// answers, and is told what came of it. No clocks: the same inputs give the same answers.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/request.hpp"
#include "core/speculation/evidence.hpp"

namespace tandem {

struct sequence_acceptance;  // core/speculation/acceptance_statistics.hpp

template <class T>
using per_method = std::array<T, kDraftMethods>;  ///< by draft_method

/// What the server is told to do unless a request says otherwise.
struct speculation_settings {
  draft_method method = draft_method::none;  ///< adaptive and `any_method`: where a request fixes k without a method
  std::int32_t k = 0;                        ///< adaptive: the most; else exactly
  std::optional<std::int32_t> disable_by_batch_size;  ///< no drafts above this many decoding sequences
  bool adaptive = false;
  bool any_method = false;  ///< adaptive: whichever source pays, per sequence and step; else `method` or nothing
};

struct draft_choice {
  draft_method method = draft_method::none;  ///< with k = 0: the source only takes in what it has not seen
  std::int32_t k = 0;
  drafts_by_evidence most = same_for_all(limits::kMaxDraftTokens);  ///< within k, by the source's own evidence
  draft_method fallback = draft_method::none;  ///< computes; drafts, fallback_k at most, where `method` offers nothing
  std::int32_t fallback_k = 0;

  bool asks(draft_method source) const { return (source == method && k > 0) || (source == fallback && fallback_k > 0); }
  std::int32_t most_drafts() const { return std::max(k, fallback_k); }
};

/// A sequence that could take part in the next step.
struct draft_question {
  const speculation_params* wanted = nullptr;  ///< the request's own wish; null: none
  sequence_acceptance* acceptance = nullptr;   ///< what its sources reached so far; null: nothing is known
  bool decoding = false;                       ///< its next row yields a token; else it may not draft
  std::int32_t length = 0;                     ///< known tokens
  std::int32_t output_length = 0;              ///< of them generated
  std::int32_t tokens_left = 0;                ///< until its limit
  per_method<std::int32_t> fits{};             ///< drafts that the lengths of sequence, model and source allow
  per_method<std::int32_t> unseen{};           ///< known tokens the source has not taken in
};

struct step_question {
  std::span<const draft_question> sequences;
  per_method<bool> available{};   ///< sources alive and not busy
  std::int32_t prefill_rows = 0;  ///< that the step will have beside the decoding sequences, at most
  std::int32_t row_budget = 0;    ///< of the step, all rows
};

/// One verified proposal.
struct proposal_seen {
  draft_method method = draft_method::none;
  sequence_acceptance* acceptance = nullptr;
  evidence_class evidence = kNoOpinion;  ///< kNothingOffered: the source had nothing, or came too late
  std::int32_t drafted = 0;
  std::int32_t accepted = 0;
};

/// One finished step of the target.
struct step_seen {
  std::int32_t decode_rows = 0;  ///< rows with logits: decoding sequences and the drafts really verified
  std::int32_t prefill_rows = 0;
  std::int64_t context = 0;  ///< Σ over rows of the positions they attend to
  double seconds = 0;        ///< of computing, without waiting for tickets
  double ticket_wait_seconds = 0;
  draft_method only_source = draft_method::none;  ///< the one whose ticket was awaited; none: several, or none was
};

/// One finished work item of a source that computes.
struct drafts_seen {
  draft_method method = draft_method::none;
  std::int32_t first_rows = 0;             ///< tokens taken in; the forward over them gives the first drafts
  std::vector<std::int32_t> sequences_at;  ///< [j] sequences that want more than j + 1 drafts: rows of forward j + 1
  double seconds = 0;
};

class speculation_policy {
 public:
  virtual ~speculation_policy() = default;
  /// One choice per sequence, in order.
  virtual std::vector<draft_choice> choose(const step_question& question) = 0;
  virtual void observe(const proposal_seen&) {}
  virtual void observe(const step_seen&) {}
  virtual void observe(const drafts_seen&) {}
};

/// What settings and request fix between them; nothing while that source cannot serve. Never another source than the
/// wished one: a request that names a method learns what that method does. `decoding`: sequences of the step.
draft_choice fixed_choice(const speculation_settings& settings, const speculation_params* wanted,
                          const per_method<bool>& available, std::int32_t decoding);

/// fixed_choice for every sequence.
class fixed_policy final : public speculation_policy {
 public:
  explicit fixed_policy(speculation_settings settings) : settings_(settings) {}
  std::vector<draft_choice> choose(const step_question& question) override;

 private:
  speculation_settings settings_;
};

/// The policy for the settings: adaptive or fixed.
std::unique_ptr<speculation_policy> make_policy(const speculation_settings& settings);

}  // namespace tandem

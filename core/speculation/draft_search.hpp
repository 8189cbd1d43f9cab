#pragma once
/// The search for the drafts of one step: pure arithmetic over what sequences may gain and what rows cost.
///
/// Maximises (expected tokens) / (expected seconds). A draft's gain is the probability that it and all before it are
/// accepted, so the best set of a given size is the best drafts overall: they are taken in falling order of gain (a
/// heap over the sequences), the objective is followed along that order, and the best point is kept; a staircase in
/// T(rows) is crossed if it is not too wide. The forwards of a draft model or head are shared by all drafts at that
/// place: how many there are is settled first (shared_depth.hpp), and they are paid in advance. O(drafts · log
/// sequences).

#include <vector>

#include "core/speculation/acceptance_statistics.hpp"
#include "core/speculation/cost_model.hpp"

namespace tandem {

/// One way in which one sequence could draft: with one source, or with one that costs no forwards and, where that one
/// offers nothing, with one that computes.
struct draft_option {
  draft_method method = draft_method::none;
  std::int32_t most = 0;                              ///< drafts
  evidence_shares offers{};                           ///< a draft of class c costs a row only that often
  std::array<survival, kEvidenceClasses> accepted{};  ///< by evidence; under kNothingOffered the fallback's
  draft_method fallback = draft_method::none;
  std::int32_t fallback_most = 0;
  std::int32_t first_rows = 1;  ///< tokens that the source that computes takes in before its first draft
  double once_seconds = 0;      ///< its share of a catch-up that pays off over many steps

  draft_method source_of(evidence_class evidence) const { return evidence == kNothingOffered ? fallback : method; }
  std::int32_t most_of(evidence_class evidence) const { return evidence == kNothingOffered ? fallback_most : most; }
  /// Of its sources, the one that computes; none: neither does.
  draft_method computing() const;
  /// The class of that one's drafts.
  evidence_class computing_class() const { return computing() == fallback ? kNothingOffered : kNoOpinion; }
};

/// `first`, and `second`, which computes, where it offers nothing, or what the second is worth more than.
/// `row`, `forward`: their prices in tokens.
draft_option cascade_of(const draft_option& first, const draft_option& second, double row, double forward);

/// Tokens gained by the drafts of one class when they are asked for, less their price each.
double worth_of_class(const draft_option& option, evidence_class evidence, double price);

/// What is already settled about the step.
struct step_base {
  double tokens = 0;             ///< expected without further drafts
  double rows = 0;               ///< with logits
  double least_row_seconds = 0;  ///< a further row costs no less: beside prefill rows, what one of them costs
  double context = 0;            ///< positions a further row attends to, on average
  std::int32_t most_rows = 0;    ///< drafts of all sequences together
};

struct drafts_found {
  std::vector<std::array<std::int8_t, kEvidenceClasses>> drafts;  ///< by sequence and evidence
  std::vector<double> gain;                                       ///< expected accepted drafts, by sequence
  double tokens = 0;                                              // expected, as all below
  double rows = 0;
  double seconds = 0;
  double tokens_per_second() const { return tokens / seconds; }
};

/// `options[i]` null: sequence i does not draft. At most one source that computes among them.
drafts_found search_drafts(const cost_model& costs, const step_base& base,
                           const std::vector<const draft_option*>& options);

}  // namespace tandem

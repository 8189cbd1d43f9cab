#pragma once
/// How likely drafts are to be accepted, per source, evidence, place in the run, and sequence; learned online from
/// decayed counts. Single-threaded.
///
/// A source keeps, by evidence class, the share accepted at each place given that the place before was; its prior is
/// the class's average, and that one's prior is ours. A sequence keeps how its drafts fared against what the source's
/// average foretold: one factor on the odds of every place, since the few runs of one sequence cannot fill a table.

#include <array>

#include "core/speculation/policy.hpp"

namespace tandem {

/// [j]: probability that drafts 0 … j are all accepted; never rising.
using survival = std::array<double, limits::kMaxDraftTokens>;
/// Probability of each evidence class, kNothingOffered included; sums to 1.
using evidence_shares = std::array<double, kEvidenceClasses>;

/// What one sequence's drafts of one source reached. Owner: the sequence.
struct sequence_record {
  double tried = 0;  ///< places verified, decayed
  double accepted = 0;
  double foretold = 0;                            ///< Σ of the source's probabilities over the places tried
  std::array<double, kEvidenceClasses> offers{};  ///< answers by evidence, decayed
  std::int32_t failures = 0;                      ///< answers in a row of which nothing was accepted
  std::int32_t steps_unasked = 0;                 ///< decoding steps since the source was last asked
};
struct sequence_acceptance {
  per_method<sequence_record> by_method;
};

class acceptance_statistics {
 public:
  explicit acceptance_statistics(draft_method source);

  void observe(const proposal_seen& seen);

  /// `record` null: a sequence nothing is known of.
  survival expect(const sequence_record* record, evidence_class evidence) const;
  /// What the source will offer when it is asked.
  evidence_shares offers(const sequence_record* record) const;

 private:
  struct counts {
    double tried = 0;
    double accepted = 0;
  };
  struct class_counts {
    std::array<counts, limits::kMaxDraftTokens> at{};
    counts all;
    double prior = 0.5;
    std::array<double, limits::kMaxDraftTokens> given_before{};  ///< probability at a place, kept up to date
    survival average{};                                          ///< of a sequence nothing is known of
  };
  static void estimate(class_counts& of);

  std::array<class_counts, kEvidenceClasses> classes_{};
  evidence_shares offers_{};  // decayed counts
  evidence_shares prior_offers_{};
};

}  // namespace tandem

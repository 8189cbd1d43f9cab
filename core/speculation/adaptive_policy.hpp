#pragma once
/// Drafts where they pay: per step the methods and numbers, for all sequences together, that the cost model and the
/// acceptance statistics expect the most tokens a second from; none where plain decoding is expected to be as fast.
///
/// What is not tried is not learned: a small share of the time (kExplorationShare) may be spent on drafts that are not
/// expected to pay, so that a source that was bad can come back, and on plain steps where their cost is not known. A
/// probe is charged in full, as if it gained nothing; its cost is saved up before it is spent.

#include "core/speculation/draft_search.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem {

class adaptive_policy final : public speculation_policy {
 public:
  explicit adaptive_policy(speculation_settings settings);

  std::vector<draft_choice> choose(const step_question& question) override;
  void observe(const proposal_seen& seen) override;
  void observe(const step_seen& seen) override;
  void observe(const drafts_seen& seen) override { costs_.observe(seen); }

  const cost_model& costs() const { return costs_; }

 private:
  /// What may be done for one sequence.
  struct outlook {
    std::optional<draft_choice> fixed;  ///< the request leaves no choice
    per_method<std::optional<draft_option>> options;
    std::optional<draft_option> cascade;  ///< the best of two of them
  };
  struct step_plan {
    std::vector<const draft_option*> ways;  ///< by sequence, of its outlook; null: it does not draft
    drafts_found found;
  };

  outlook unknown_sequence(const step_question& question) const;
  double model_saves_per_token(const step_question& question) const;
  outlook outlook_of(const draft_question& asked, const step_question& question, std::int32_t decoding,
                     double saved_per_token) const;
  draft_choice start_of(const draft_question& asked, const step_question& question, double saved_per_token) const;
  std::int32_t most_for(const draft_question& asked) const;
  bool allows(const draft_question& asked, draft_method method) const;
  std::optional<draft_option> option_of(const draft_question& asked, draft_method method, std::int32_t most) const;
  step_base base_of(const step_question& question, const std::vector<outlook>& outlooks) const;
  step_plan best_plan(const step_base& base, std::vector<outlook>& outlooks) const;
  step_plan plan_with(const step_base& base, std::vector<const draft_option*> ways) const;
  step_plan each_its_own(const step_base& base, std::vector<outlook>& outlooks, double tokens_per_second,
                         draft_method computing) const;
  bool pays(const step_base& base, const step_plan& plan);
  bool wants_plain_step(const step_base& base, const step_plan& plan);
  void probe(const step_question& question, const step_base& base, const std::vector<outlook>& outlooks,
             const step_plan& plan, std::vector<draft_choice>& choices);
  double probe_seconds(const draft_question& asked, const step_base& base, const draft_option& option,
                       std::int32_t drafts) const;
  static void note_who_was_asked(const step_question& question, const std::vector<draft_choice>& choices);

  speculation_settings settings_;
  cost_model costs_;
  per_method<acceptance_statistics> statistics_;
  double savings_seconds_ = 0;  // for exploration
};

}  // namespace tandem

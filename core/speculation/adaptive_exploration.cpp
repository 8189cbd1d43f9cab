// What the adaptive policy tries although it is not expected to pay, from its savings.
#include <algorithm>

#include "core/speculation/adaptive_policy.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kProbeAfterSteps = 16;  // a sequence is probed only when a source was idle for it that long
constexpr std::int32_t kLookAfterSteps = 2;    // the same for looking something up: twice as long after each failure
constexpr std::int32_t kMostFailures = 5;
constexpr std::int32_t kProbeModelDrafts = 2;
constexpr std::int32_t kProbeMatchDrafts = 4;
constexpr double kKnownPlainSteps = 0.5;  // weight of the plain step's bucket below which it is tried again

std::int32_t patience_for(draft_method method, const sequence_record& record) {
  if (computes(method)) return kProbeAfterSteps;
  return kLookAfterSteps << std::min(record.failures, kMostFailures);
}

/// What is usual for the sequence, with so many drafts of that source tried beside it where both have room.
draft_choice trying(const draft_choice& usual, draft_method method, std::int32_t drafts) {
  draft_choice probe{method, drafts, same_for_all(drafts)};
  if (!computes(method)) {
    const bool behind = computes(usual.method);
    probe.fallback = behind ? usual.method : usual.fallback;
    probe.fallback_k = behind ? usual.k : usual.fallback_k;
    return probe;
  }
  if (usual.k == 0 || computes(usual.method)) return probe;
  probe = usual;
  probe.fallback = method;
  probe.fallback_k = drafts;
  return probe;
}

}  // namespace

/// What plain decoding costs must be known, or nothing can be said about drafts.
bool adaptive_policy::wants_plain_step(const step_base& base, const step_plan& plan) {
  if (!costs_.knows_steps()) return true;
  if (costs_.steps_seen_at(base.rows) >= kKnownPlainSteps) return false;
  const double plain_seconds = costs_.step_seconds(base.rows);
  const double lost = plain_seconds - base.tokens / plan.found.tokens_per_second();
  if (savings_seconds_ < lost) return false;
  savings_seconds_ -= std::max(0.0, lost);
  return true;
}

/// All that a probe may cost if nothing of it is accepted.
double adaptive_policy::probe_seconds(const draft_question& asked, const step_base& base, const draft_option& option,
                                      std::int32_t drafts) const {
  const double rows = costs_.step_seconds(base.rows + drafts) - costs_.step_seconds(base.rows);
  const double wider = std::max(rows, drafts * base.least_row_seconds);
  if (!computes(option.method)) return wider + costs_.asking_seconds(option.method);
  return wider + costs_.forward_seconds(option.method, std::max(1, asked.unseen[index_of(option.method)])) +
         (drafts - 1) * costs_.forward_seconds(option.method, 1);
}

/// At most one sequence a step drafts although it is not expected to pay: the one for which the source was idle longest
/// among those for which the savings suffice.
void adaptive_policy::probe(const step_question& question, const step_base& base, const std::vector<outlook>& outlooks,
                            const step_plan& plan, std::vector<draft_choice>& choices) {
  std::size_t chosen = choices.size();
  draft_choice probe;
  double price = 0;
  std::int32_t longest = -1;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const draft_question& asked = question.sequences[i];
    if (asked.acceptance == nullptr) continue;
    for (const draft_method method : kDraftSources) {
      const auto& option = outlooks[i].options[index_of(method)];
      if (!option || choices[i].asks(method)) continue;
      const sequence_record& record = asked.acceptance->by_method[index_of(method)];
      const std::int32_t idle = record.steps_unasked - patience_for(method, record);
      if (idle <= longest) continue;
      const std::int32_t usual = computes(method) ? kProbeModelDrafts : kProbeMatchDrafts;
      const std::int32_t drafts = std::min(usual, option->most);
      // A lookup costs next to nothing more than plain decoding, which is what must not be fallen behind.
      const bool gives_up = choices[i].k > 0 && computes(method) && computes(choices[i].method);
      const double forgone = gives_up ? plan.found.gain[i] / plan.found.tokens_per_second() : 0;
      const double seconds = forgone + probe_seconds(asked, base, *option, drafts);
      if (seconds > savings_seconds_) continue;
      longest = idle;
      chosen = i;
      price = seconds;
      probe = trying(choices[i], method, drafts);
    }
  }
  if (chosen == choices.size()) return;
  choices[chosen] = probe;
  savings_seconds_ -= price;
}

void adaptive_policy::note_who_was_asked(const step_question& question, const std::vector<draft_choice>& choices) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const draft_question& asked = question.sequences[i];
    if (!asked.decoding || asked.acceptance == nullptr) continue;
    for (const draft_method method : kDraftSources) {
      std::int32_t& unasked = asked.acceptance->by_method[index_of(method)].steps_unasked;
      unasked = choices[i].asks(method) ? 0 : std::min(unasked + 1, 1 << 20);
    }
  }
}

}  // namespace tandem

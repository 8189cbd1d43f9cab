// Which drafts the next step asks for, and from whom.
#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/scheduler_impl.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem {

/// k that length limits allow: rows up to the model's length, tokens up to max_tokens, the draft's own context.
std::int32_t scheduler::impl::drafts_that_fit(const sequence& seq, draft_method method) const {
  std::int32_t k = options.max_draft_tokens;
  k = std::min(k, seq.max_tokens - seq.output_length() - 1);
  k = std::min(k, options.max_model_len - 1 - seq.length());
  if (kind_of(method) == source_kind::model) {
    if (seq.length() > options.draft_context_limit) return 0;
    k = std::min(k, options.draft_context_limit - seq.length() + 1);
  }
  if (kind_of(method) == source_kind::head) k = std::min(k, options.head_draft_limit);
  return std::max(0, k);
}

draft_question scheduler::impl::question_of(sequence& seq) const {
  static const speculation_params kUndrafted{.method = draft_method::none, .k = std::nullopt};
  draft_question asked;
  asked.wanted = is_lane(seq) ? &kUndrafted : &seq.request->speculation;
  asked.acceptance = &seq.acceptance;
  asked.decoding = seq.decoding();
  asked.length = seq.length();
  asked.output_length = seq.output_length();
  asked.tokens_left = seq.max_tokens - seq.output_length();
  for (const draft_method method : options.drafters) {
    const auto source = static_cast<std::size_t>(method);
    asked.fits[source] = drafts_that_fit(seq, method);
    const bool keeps_up = kind_of(method) == source_kind::head;
    asked.unseen[source] = keeps_up ? 1 : seq.length() - seq.source(method).known;
  }
  return asked;
}

/// The policy's choices, as far as sources and lengths allow; in the order of `ready`.
std::vector<draft_choice> scheduler::impl::draft_wishes(const std::vector<sequence*>& ready) {
  std::vector<draft_question> asked;
  std::int32_t prefill = 0;
  asked.reserve(ready.size());
  for (sequence* seq : ready) {
    asked.push_back(question_of(*seq));
    if (!seq->decoding()) prefill = std::min(prefill + seq->pending(), options.max_num_batched_tokens);
  }
  step_question question;
  question.sequences = asked;
  question.prefill_rows = prefill;
  question.row_budget = options.max_num_batched_tokens;
  for (const draft_method method : options.drafters)
    question.available[static_cast<std::size_t>(method)] = source_ready(method);
  std::vector<draft_choice> choices = policy->choose(question);
  TANDEM_ASSERT(choices.size() == ready.size());
  return choices;
}

/// Of a choice what the source can do for the sequence now.
planned_drafts scheduler::impl::drafts_from(draft_method method, std::int32_t k, const drafts_by_evidence& most,
                                            const sequence& seq) const {
  if (method == draft_method::none || !source_ready(method) || is_lane(seq)) return {};
  if (kind_of(method) == source_kind::model && seq.length() > options.draft_context_limit) return {};
  return {.method = method,
          .drafts = seq.decoding() ? std::min(k, drafts_that_fit(seq, method)) : 0,
          .catch_up = 0,
          .most = most};
}

planned_rows scheduler::impl::wish_of(sequence& seq, const draft_choice& choice) const {
  planned_rows wish{.seq = &seq};
  wish.sources[0] = drafts_from(choice.method, choice.k, choice.most, seq);
  if (choice.fallback_k == 0) return wish;
  TANDEM_ASSERT(computes(choice.fallback) && choice.fallback != choice.method);
  const bool has_first = wish.sources[0].drafts > 0;
  wish.sources[has_first ? 1 : 0] =
      drafts_from(choice.fallback, choice.fallback_k, same_for_all(choice.fallback_k), seq);
  return wish;
}

/// The source takes in what it has not seen; when that is more than its budget allows, it does not draft yet.
void scheduler::impl::plan_catch_up(planned_drafts& part, const planned_rows& of, std::int32_t& draft_budget) {
  if (part.method == draft_method::none) return;
  sequence& seq = *of.seq;
  source_view& source = seq.source(part.method);
  if (kind_of(part.method) == source_kind::head) source.known = seq.length() - 1;
  const std::int32_t known = source.known;
  if (kind_of(part.method) != source_kind::model) {
    // Costs no rows; during prefill there is nothing to tell yet.
    part.catch_up = seq.length() - known;
    if (part.drafts == 0) part = {};
    return;
  }
  const std::int32_t covered = static_cast<std::int32_t>(seq.table.size()) * options.block_size;
  const std::int32_t target = part.drafts > 0 ? seq.length() : seq.computed + of.rows;
  const std::int32_t wanted = std::max(0, std::min(target, covered) - known);
  part.catch_up = std::min(wanted, draft_budget);
  draft_budget -= part.catch_up;
  if (known + part.catch_up < seq.length()) part.drafts = 0;
  draft_budget = std::max(0, draft_budget - part.drafts);
  if (part.catch_up == 0) part = {};
}

}  // namespace tandem

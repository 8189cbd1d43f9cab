// Planning the next step: who gets rows, drafts and blocks.
#include <algorithm>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "core/scheduling/row_planner.hpp"
#include "core/scheduling/scheduler_impl.hpp"
#include "core/speculation/source_kind.hpp"
#include "core/ticket.hpp"

namespace tandem {

bool scheduler::impl::source_ready(draft_method method) const {
  const source_state& source = sources[static_cast<std::size_t>(method)];
  return source.alive && source.in_flight == 0;
}

/// Which drafts of the last proposal turned out to be committed: their KV counts as known to the source.
void scheduler::impl::resolve_drafts(sequence& seq) {
  for (const draft_method method : options.drafters) {
    source_view& view = seq.source(method);
    if (view.in_flight != 0 || !view.drafts) continue;
    const std::shared_ptr<ticket> sealed = std::exchange(view.drafts, nullptr);
    const std::int32_t row = std::exchange(view.ticket_row, -1);
    if (row < 0 || sealed->current() != ticket::state::filled) continue;
    const auto& drafts = sealed->drafts(static_cast<std::size_t>(row)).tokens;
    const auto usable = std::min<std::int32_t>(view.drafts_with_kv, static_cast<std::int32_t>(drafts.size()));
    for (std::int32_t i = 0; i < usable && view.known < seq.length(); ++i) {
      if (drafts[static_cast<std::size_t>(i)] != seq.known[static_cast<std::size_t>(view.known)]) break;
      ++view.known;
    }
  }
}

/// Extends the table to hold `tokens` positions as far as the lease goes; true when it does.
bool scheduler::impl::cover(sequence& seq, std::int32_t tokens) {
  const std::int32_t need = blocks_for(tokens);
  while (static_cast<std::int32_t>(seq.table.size()) < need && lease.size() > 0) seq.table.push_back(take_block());
  return static_cast<std::int32_t>(seq.table.size()) >= need;
}

/// Lets go of prompts that nobody computes with, then preempts from the youngest on, until blocks come back; but never
/// the needy one: it waits with what it has.
void scheduler::impl::make_room(const sequence& needy) {
  const auto drop = [this](auto& group) { return drop_kept(group.second); };
  while (lease.exhausted() && fenced.empty()) {
    if (std::any_of(groups.begin(), groups.end(), drop)) continue;
    sequence& youngest = *running.rbegin()->second;
    if (&youngest == &needy || (is_lane(needy) && youngest.group == needy.group)) return;
    preempt(youngest);
  }
}

/// Running sequences, oldest first, that can take at least one row: each has a block for its next position.
std::vector<sequence*> scheduler::impl::secure_blocks() {
  std::vector<sequence*> ready;
  for (auto at = running.begin(); at != running.end();) {
    sequence& seq = *at->second;
    if (seq.parked) {
      ++at;
      continue;
    }
    resolve_drafts(seq);
    const bool whole = seq.decoding() || !options.chunked_prefill;
    const std::int32_t tokens = whole ? seq.length() : seq.computed + 1;
    if (cover(seq, tokens)) {
      ready.push_back(&seq);
    } else {
      lease.note_unmet(blocks_for(tokens) - static_cast<std::int32_t>(seq.table.size()));
      make_room(seq);
    }
    at = running.upper_bound({seq.rank, &seq});  // preemption may have removed younger ones
  }
  return ready;
}

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

std::int32_t scheduler::impl::lease_target() const {
  const auto live = static_cast<std::int32_t>(running.size()) + matching;
  const std::int32_t per_sequence = blocks_for(options.max_draft_tokens + 1) + 1;
  const std::int32_t useful = live * per_sequence + blocks_for(options.max_num_batched_tokens);
  // A small pool is not drained into the lease: that would evict its cached prefixes without need.
  return std::min(useful, std::max(2, options.num_kv_blocks / 8));
}

/// Takes blocks for the granted rows; what the lease cannot hold is not computed in this step, drafts first.
void scheduler::impl::fit_to_blocks(planned_rows& part) {
  sequence& seq = *part.seq;
  const std::int32_t wanted = seq.computed + part.rows + part.drafts();
  if (cover(seq, wanted)) return;
  lease.note_unmet(blocks_for(wanted) - static_cast<std::int32_t>(seq.table.size()));
  const std::int32_t covered = static_cast<std::int32_t>(seq.table.size()) * options.block_size;
  part.rows = std::min(part.rows, covered - seq.computed);
  part.limit_drafts(std::max(0, covered - seq.computed - part.rows));
}

std::vector<planned_rows> scheduler::impl::plan_rows() {
  const std::vector<sequence*> ready = secure_blocks();
  std::vector<planned_rows> plan;
  std::vector<row_wish> wishes;
  const std::vector<draft_choice> choices = draft_wishes(ready);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    sequence* seq = ready[i];
    plan.push_back(wish_of(*seq, choices[i]));
    wishes.push_back({seq->pending(), seq->decoding(), plan.back().drafts(), seq->last_step});
  }
  const std::vector<row_grant> grants = divide_rows(wishes, {options.max_num_batched_tokens, options.chunked_prefill});
  std::int32_t draft_budget = options.max_num_batched_tokens;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    plan[i].rows = grants[i].rows;
    plan[i].limit_drafts(grants[i].drafts);
    if (plan[i].rows == 0) continue;
    fit_to_blocks(plan[i]);
    for (planned_drafts& part : plan[i].sources) plan_catch_up(part, plan[i], draft_budget);
  }
  std::erase_if(plan, [](const planned_rows& part) { return part.rows == 0; });
  return plan;
}

void scheduler::impl::launch(std::vector<planned_rows> plan, time_point now) {
  built_step built = build_step(++last_step, plan, options, closed);
  for (const planned_rows& part : plan) {
    part.seq->in_step = true;
    part.seq->last_step = last_step;
  }
  for (std::size_t i = 0; i < built.methods.size(); ++i) {
    source_state& source = sources[static_cast<std::size_t>(built.methods[i])];
    source.in_flight = last_step;
    source.work = built.proposals[i];
    out.proposals.push_back({built.proposals[i]});
    out.methods.push_back(built.methods[i]);
  }
  in_flight = built.work;
  in_flight_plan = std::move(plan);
  launched = now;
  out.step.emplace(run_step{std::move(built.work)});
}

void scheduler::impl::plan_step(time_point now) {
  for (auto& [request, group] : groups) {
    if (!group.beams) continue;
    wake_lanes(group);
    take_due_steps(group);
  }
  std::vector<planned_rows> plan = plan_rows();
  if (!plan.empty()) launch(std::move(plan), now);
}

void scheduler::check() const {
  const impl& s = *impl_;
  std::int32_t rows = 0;
  if (s.in_flight) {
    for (const step_rows& part : s.in_flight->rows)
      rows += static_cast<std::int32_t>(part.tokens.size()) + part.draft_rows;
  }
  TANDEM_ASSERT(rows <= s.options.max_num_batched_tokens);
  TANDEM_ASSERT(s.in_flight_plan.size() == (s.in_flight ? s.in_flight->rows.size() : 0));
  TANDEM_ASSERT(s.free_slots.size() + s.running.size() == static_cast<std::size_t>(s.options.max_num_seqs));
  std::size_t matching = 0;
  for (const auto& [id, seq] : s.sequences) {
    matching += seq->at == sequence::stage::matching;
    TANDEM_ASSERT(seq->computed <= seq->length());
    TANDEM_ASSERT(seq->computed <= static_cast<std::int32_t>(seq->table.size()) * s.options.block_size);
    TANDEM_ASSERT((seq->at == sequence::stage::running) == (seq->slot != kNoSlot));
    TANDEM_ASSERT(seq->output_length() <= std::max(seq->max_tokens, 0));
    for (const block_id block : seq->table) TANDEM_ASSERT(block >= 0 && block < s.options.num_kv_blocks);
  }
  for (const auto& [id, group] : s.groups) {
    TANDEM_ASSERT(group.unstarted > 0 || !group.members.empty());
    TANDEM_ASSERT(group.kept.blocks.empty() || group.unstarted > 0);
  }
  TANDEM_ASSERT(s.holds == s.count_holds());
  TANDEM_ASSERT(matching == static_cast<std::size_t>(s.matching));
  TANDEM_ASSERT(s.sequences.size() == s.running.size() + s.waiting.size() + matching);
  // Liveness: whoever waits, waits for an answer that will come.
  const auto arrives = [&](const auto& entry) { return entry.second.beams && !s.beams_are_complete(entry.second); };
  const bool lanes_under_way = std::any_of(s.groups.begin(), s.groups.end(), arrives);
  const bool something_under_way =
      s.in_flight || s.lease.pending() || s.matching > 0 || !s.fenced.empty() || lanes_under_way;
  TANDEM_ASSERT(s.sequences.empty() || something_under_way);
}

}  // namespace tandem

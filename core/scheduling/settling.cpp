// What a step did for each of its sequences.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/commit.hpp"
#include "core/scheduling/scheduler_impl.hpp"
#include "core/ticket.hpp"

namespace tandem {
namespace {

double seconds(time_point from, time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// What the source itself thought of what it offered.
evidence_class evidence_of(const step_work& work, const draft_offer& offer, const planned_drafts& asked) {
  if (offer.ticket < 0) return kNothingOffered;
  const ticket& source = *work.tickets[static_cast<std::size_t>(offer.ticket)];
  if (source.current() != ticket::state::filled) return kNothingOffered;
  const ticket::row& offered = source.drafts(static_cast<std::size_t>(offer.row));
  const bool was_free_to = asked.most[kNoOpinion] > 0;
  const bool nothing = offered.evidence == kNoOpinion && offered.tokens.empty() && was_free_to;
  return nothing ? kNothingOffered : offered.evidence;
}

step_seen step_seen_of(const step_work& work, const step_outcome& outcome, const std::vector<planned_rows>& plan) {
  step_seen seen;
  seen.ticket_wait_seconds = static_cast<double>(outcome.ticket_wait_ns) * 1e-9;
  seen.seconds = static_cast<double>(outcome.device_ns) * 1e-9 - seen.ticket_wait_seconds;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const step_rows& part = work.rows[i];
    const auto known = static_cast<std::int32_t>(part.tokens.size());
    const std::int32_t with_logits = (part.yields_token ? 1 : 0) + outcome.slots[i].drafted;
    seen.decode_rows += with_logits;
    seen.prefill_rows += known - (part.yields_token ? 1 : 0);
    const std::int64_t rows = known + outcome.slots[i].drafted;
    seen.context += rows * (part.first_position + rows);
    if (work.tickets.size() == 1 && plan[i].drafts() > 0) seen.only_source = plan[i].sources.front().method;
  }
  return seen;
}

}  // namespace

void scheduler::impl::stamp_times(sequence& seq, time_point now, bool yielded) const {
  if (!seq.first_row) {
    seq.first_row = launched;
    seq.stats.queue_ms = seconds(seq.submitted, launched) * 1e3;
  }
  if (!yielded) return;
  if (!seq.first_token) {
    seq.first_token = now;
    seq.stats.prefill_ms = seconds(*seq.first_row, now) * 1e3;
  }
  seq.stats.decode_ms = seconds(*seq.first_token, now) * 1e3;
}

/// What came of the drafts that were asked for; `accepted` of them are committed. A second source was asked only where
/// the first one had nothing.
void scheduler::impl::settle_drafts(const step_work& work, std::size_t row, const planned_rows& part,
                                    const slot_outcome& slot, std::int32_t accepted) {
  if (part.drafts() == 0) {
    totals.undrafted += slot.tokens.empty() ? 0 : 1;
    return;
  }
  const auto asked = static_cast<std::size_t>(slot.offer == 0 ? 1 : kDraftOffers);
  for (std::size_t i = 0; i < asked; ++i) {
    const planned_drafts& source = part.sources[i];
    if (source.drafts == 0) continue;
    const bool taken = slot.offer == static_cast<std::int32_t>(i);
    const evidence_class evidence = evidence_of(work, work.rows[row].offers[i], source);
    const std::int32_t drafted = taken ? slot.drafted : 0;
    totals.speculations.push_back({source.method, source.drafts, drafted, taken ? accepted : 0});
    policy->observe(proposal_seen{source.method, &part.seq->acceptance, evidence, drafted, taken ? slot.accepted : 0});
    if (drafted == 0) continue;
    sequence_stats::drafting& stats = part.seq->stats.by_method[index_of(source.method)];
    ++stats.runs;
    stats.draft_tokens += drafted;
    stats.accepted_tokens += accepted;
    for (std::int32_t j = 0; j < accepted; ++j) ++stats.accepted_at[static_cast<std::size_t>(j)];
  }
}

/// What the step did for one sequence: commit, publish, and end it when that is what the tokens say.
void scheduler::impl::settle_row(const step_work& work, std::size_t row, const planned_rows& part,
                                 const slot_outcome& slot, time_point now) {
  sequence& seq = *part.seq;
  TANDEM_ASSERT(slot.slot == seq.slot && slot.slot_gen == seq.slot_gen);
  stamp_times(seq, now, !slot.tokens.empty());
  totals.prompt_tokens += std::max(0, std::min(seq.computed + slot.rows_done, seq.prompt_length()) - seq.computed);
  const std::int32_t accepted_before = seq.stats.accepted_tokens;
  auto entry = commit_outcome(seq, slot, options);
  totals.generated_tokens += static_cast<std::int32_t>(entry.tokens.size());
  settle_drafts(work, row, part, slot, seq.stats.accepted_tokens - accepted_before);
  remember_prompt_scores(seq, entry.prompt_logprobs);
  publish(seq);
  const std::optional<finish_reason> ended = entry.end ? std::optional<finish_reason>(entry.end->reason) : std::nullopt;
  if (ended) entry.stats = seq.stats;
  const bool says_something = ended || !entry.tokens.empty() || !entry.prompt_logprobs.empty();
  if (says_something) tell(seq, std::move(entry));
  if (ended) retire(seq, *ended);
}

/// The step is over for a lane: its search goes on when all its lanes are through. A lost step ends all of them.
void scheduler::impl::leave_step(const planned_rows& lane, const step_outcome& outcome, std::size_t row,
                                 time_point now) {
  auto& end = lane.seq->group->beams->end_wanted;
  if (!outcome.ok && !end) end = finish{.reason = finish_reason::error, .message = outcome.error_message};
  if (!end) settle_lane(lane, outcome.slots[row], now);
}

void scheduler::impl::settle_rows(const step_work& work, const std::vector<planned_rows>& plan,
                                  const step_outcome& outcome, time_point now) {
  std::set<choice_group*> searches;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    sequence& seq = *plan[i].seq;
    seq.in_step = false;
    if (is_lane(seq)) {
      searches.insert(seq.group);
      leave_step(plan[i], outcome, i, now);
    } else if (!outcome.ok) {
      end_now(seq, finish{.reason = finish_reason::error, .message = outcome.error_message});
    } else if (seq.end_wanted) {
      end_now(seq, *seq.end_wanted);
    } else {
      settle_row(work, i, plan[i], outcome.slots[i], now);
    }
  }
  for (choice_group* search : searches) settle_beams(*search);
}

void scheduler::impl::finish_step(const step_finished& message, time_point now) {
  const step_outcome& outcome = *message.outcome;
  if (!in_flight || outcome.step != in_flight->step) return;
  const std::shared_ptr<const step_work> work = std::exchange(in_flight, nullptr);
  const std::vector<planned_rows> plan = std::exchange(in_flight_plan, {});
  TANDEM_ASSERT(!outcome.ok || outcome.slots.size() == plan.size());
  if (!out.committed) out.committed.emplace();
  out.committed->step = outcome.step;
  if (outcome.ok) policy->observe(step_seen_of(*work, outcome, plan));
  settle_rows(*work, plan, outcome, now);
  for (const step_rows& part : work->rows)
    totals.rows += static_cast<std::int32_t>(part.tokens.size()) + part.draft_rows;
  totals.step_seconds = seconds(launched, now);
  totals.device_seconds = static_cast<double>(outcome.device_ns) * 1e-9;
  out.measured.emplace(std::exchange(totals, {}));
}

}  // namespace tandem

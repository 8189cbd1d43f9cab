#include "core/scheduling/scheduler.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "core/scheduling/commit.hpp"
#include "core/scheduling/scheduler_impl.hpp"
#include "core/speculation/source_kind.hpp"
#include "core/ticket.hpp"

namespace tandem {
namespace {

/// FNV-1a; 0 is kept for "no salt".
std::uint64_t hash_salt(const std::string& salt) {
  if (salt.empty()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : salt) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash | 1;
}

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

/// One forward takes in what is new and gives the first drafts; each further one gives one draft to those that want it.
drafts_seen forwards_of(draft_method method, const draft_work& work, double seconds) {
  drafts_seen forwards{.method = method, .first_rows = 0, .sequences_at = {}, .seconds = seconds};
  for (const proposal& wish : work.proposals) {
    if (is_called_off(wish)) continue;
    forwards.first_rows += static_cast<std::int32_t>(wish.new_tokens.size());
    const auto further = static_cast<std::size_t>(std::max(0, wish.k - 1));
    if (forwards.sequences_at.size() < further) forwards.sequences_at.resize(further);
    for (std::size_t j = 0; j < further; ++j) ++forwards.sequences_at[j];
  }
  return forwards;
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

scheduler::impl::impl(scheduler_options opts, std::unique_ptr<speculation_policy> choice)
    : options(std::move(opts)), policy(std::move(choice)),
      lease(options.num_kv_blocks),
      holds(options.num_kv_blocks),
      pool_gen(options.pool_gen) {
  TANDEM_ASSERT(options.max_num_seqs > 0 && options.max_num_batched_tokens > 0 && options.block_size > 0);
  TANDEM_ASSERT(options.num_kv_blocks >= blocks_for(options.max_model_len));
  for (slot_id slot = options.max_num_seqs; slot-- > 0;) free_slots.push_back(slot);
  slot_gens.assign(static_cast<std::size_t>(options.max_num_seqs), 0);
  for (const draft_method method : options.drafters) {
    sources[static_cast<std::size_t>(method)] = {.exists = true, .alive = true, .in_flight = 0, .work = nullptr};
  }
}

sequence* scheduler::impl::find(sequence_id id) {
  const auto found = sequences.find(id);
  return found == sequences.end() ? nullptr : found->second.get();
}

void scheduler::impl::admit(const admit_sequence& message, time_point) {
  TANDEM_ASSERT(!message.prompt->empty());
  TANDEM_ASSERT(static_cast<std::int32_t>(message.prompt->size()) + std::max(message.max_tokens, 0) <=
                options.max_model_len);
  auto seq = std::make_unique<sequence>();
  seq->id = message.id;
  seq->request = message.request;
  seq->prompt = message.prompt;
  seq->sampling = message.sampling;
  seq->noise_key = message.noise_key;
  seq->salt = hash_salt(message.request->cache_salt);
  seq->max_tokens = message.max_tokens;
  seq->rank = {options.priority_policy ? message.request->priority : 0, message.arrival};
  seq->submitted = message.submitted;
  seq->deadline = message.deadline;
  seq->known = *message.prompt;
  seq->known.insert(seq->known.end(), message.resumed_output.begin(), message.resumed_output.end());
  seq->stats.prompt_tokens = seq->prompt_length();
  if (!message.request->stopping.stop.empty()) {
    seq->stops = std::make_shared<const stop_automaton>(message.request->stopping.stop);
  }
  replay_output(*seq, options);
  sequence& placed = *seq;
  const bool is_new = sequences.emplace(message.id, std::move(seq)).second;
  TANDEM_ASSERT(is_new);
  waiting.emplace(placed.rank, &placed);
  join_group(placed);
  if (message.request->beams) join_beams(placed, message);
}

void scheduler::impl::cancel(request_id request) {
  std::vector<sequence_id> choices;
  for (auto at = sequences.lower_bound({request, 0}); at != sequences.end() && at->first.request == request; ++at)
    choices.push_back(at->first);
  for (const sequence_id id : choices) {
    if (sequence* seq = find(id)) end_soon(*seq, finish_reason::cancelled);  // lanes of a search end together
  }
}

void scheduler::impl::expire(time_point now) {
  std::vector<sequence_id> late;
  for (const auto& [id, seq] : sequences) {
    if (seq->deadline && *seq->deadline <= now) late.push_back(id);
  }
  for (const sequence_id id : late) {
    if (sequence* seq = find(id)) end_soon(*seq, finish_reason::timeout);
  }
}

void scheduler::impl::matched(const prefix_matched& message) {
  if (message.pool_gen != pool_gen) return;  // the pool that pinned them is gone
  hold_pinned(message.blocks);
  sequence* seq = find(message.id);
  if (seq == nullptr || seq->at != sequence::stage::matching || seq->incarnation != message.incarnation) {
    return let_go(message.blocks);
  }
  --matching;
  TANDEM_ASSERT(message.cached_target < seq->length());
  TANDEM_ASSERT(static_cast<std::size_t>(message.cached_target / options.block_size) == message.blocks.size());
  seq->table = message.blocks;
  seq->computed = message.cached_target;
  seq->published = static_cast<std::int32_t>(message.blocks.size());
  seq->published_draft = message.cached_draft / options.block_size;
  seq->source(draft_method::draft_model).known = message.cached_draft;
  totals.prefix_queried_tokens += seq->length();
  totals.prefix_hit_tokens += message.cached_target;
  if (!std::exchange(seq->first_match_done, true)) {
    seq->stats.cached_tokens = std::min(message.cached_target, seq->prompt_length());
  }
  run(*seq);
}

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

void scheduler::impl::finish_step(const step_finished& message, time_point now) {
  const step_outcome& outcome = *message.outcome;
  if (!in_flight || outcome.step != in_flight->step) return;
  const std::shared_ptr<const step_work> work = std::exchange(in_flight, nullptr);
  const std::vector<planned_rows> plan = std::exchange(in_flight_plan, {});
  TANDEM_ASSERT(!outcome.ok || outcome.slots.size() == plan.size());
  if (!out.committed) out.committed.emplace();
  out.committed->step = outcome.step;
  if (outcome.ok) policy->observe(step_seen_of(*work, outcome, plan));
  std::set<choice_group*> searches;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    sequence& seq = *plan[i].seq;
    seq.in_step = false;
    if (is_lane(seq)) {
      searches.insert(seq.group);
      auto& end = seq.group->beams->end_wanted;
      if (!outcome.ok && !end) end = finish{.reason = finish_reason::error, .message = outcome.error_message};
      if (!end) settle_lane(plan[i], outcome.slots[i], now);
    } else if (!outcome.ok) {
      end_now(seq, finish{.reason = finish_reason::error, .message = outcome.error_message});
    } else if (seq.end_wanted) {
      end_now(seq, *seq.end_wanted);
    } else {
      settle_row(*work, i, plan[i], outcome.slots[i], now);
    }
  }
  for (choice_group* search : searches) settle_beams(*search);
  for (const step_rows& part : work->rows) {
    totals.rows += static_cast<std::int32_t>(part.tokens.size()) + part.draft_rows;
  }
  totals.step_seconds = seconds(launched, now);
  totals.device_seconds = static_cast<double>(outcome.device_ns) * 1e-9;
  out.measured.emplace(std::exchange(totals, {}));
}

void scheduler::impl::finish_drafts(const draft_finished& message) {
  source_state& source = sources[static_cast<std::size_t>(message.method)];
  const draft_outcome& outcome = *message.outcome;
  if (source.in_flight != outcome.step) return;
  source.in_flight = 0;
  const std::shared_ptr<const draft_work> work = std::exchange(source.work, nullptr);
  if (outcome.ok && computes(message.method)) {
    const drafts_seen seen = forwards_of(message.method, *work, static_cast<double>(outcome.device_ns) * 1e-9);
    if (seen.first_rows > 0) policy->observe(seen);
  }
  std::unordered_map<slot_id, const draft_outcome::entry*> by_slot;
  if (outcome.ok) {
    for (const auto& entry : outcome.entries) by_slot[entry.slot] = &entry;
  }
  for (const auto& [rank, seq] : running) {
    source_view& view = seq->source(message.method);
    if (view.in_flight != outcome.step) continue;
    view.in_flight = 0;
    const auto found = by_slot.find(seq->slot);
    if (found == by_slot.end() || found->second->incarnation != seq->incarnation) {
      view.drafts = nullptr;
      continue;
    }
    view.known = std::min(found->second->known_rows, seq->length());
    // A source of text that claimed rows for its drafts would not be told those that are accepted.
    TANDEM_ASSERT(computes(message.method) || found->second->draft_rows == 0);
    view.drafts_with_kv = found->second->draft_rows;
  }
  release_fenced(message.method, outcome.step);
}

void scheduler::impl::change_drafter(const drafter_changed& message) {
  source_state& source = sources[static_cast<std::size_t>(message.method)];
  if (!source.exists) return;
  source.alive = message.alive;
  if (source.work) source.work->drafts->cancel();
  // A drafter's stream ends with it, before anybody hears of its death: nothing of it is still running, also when no
  // drafter follows. A source without device state took its knowledge with it.
  const step_id lost = std::exchange(source.in_flight, 0);
  source.work = nullptr;
  closed.sources[static_cast<std::size_t>(message.method)].clear();
  for (const auto& [rank, seq] : running) {
    source_view& view = seq->source(message.method);
    const std::int32_t kept = kind_of(message.method) == source_kind::model ? view.known : 0;
    view = source_view{};
    view.known = kept;
    ++seq->incarnation;
  }
  if (lost != 0) release_fenced(message.method, lost);
}

void scheduler::impl::restart_allocator(const allocator_restarted& message) {
  pool_gen = message.pool_gen;
  lease.forget_request();
  adopt_blocks adopt{pool_gen, lease.blocks()};
  for (const auto& [rank, seq] : running) {
    adopt.held.insert(adopt.held.end(), seq->table.begin(), seq->table.end());
    seq->published = 0;
    seq->published_draft = 0;
  }
  for (const fenced_blocks& held : fenced) {
    adopt.held.insert(adopt.held.end(), held.blocks.begin(), held.blocks.end());
  }
  for (const auto& [id, seq] : sequences) {
    if (seq->at != sequence::stage::matching) continue;
    --matching;
    ++seq->incarnation;
    seq->at = sequence::stage::waiting;
    waiting.emplace(seq->rank, seq.get());
  }
  for (auto& [request, group] : groups) {  // gone with the old pool, like everything nobody runs with
    holds.drop(group.kept.blocks);
    group.kept = {};
  }
  out.adopt = std::move(adopt);
}

scheduler_commands scheduler::impl::pump(time_point now) {
  start_waiting();
  if (!in_flight) plan_step(now);
  if (!sequences.empty()) out.lease = lease.request(lease_target(), pool_gen);
  if (out.committed && out.committed->entries.empty()) out.committed.reset();
  if (out.publish && out.publish->entries.empty()) out.publish.reset();
  if (out.release && out.release->blocks.empty()) out.release.reset();
  return std::exchange(out, {});
}

scheduler::scheduler(scheduler_options options, std::unique_ptr<speculation_policy> policy)
    : impl_(std::make_unique<impl>(std::move(options), std::move(policy))) {}
scheduler::~scheduler() = default;

scheduler_commands scheduler::on(const admit_sequence& message, time_point now) {
  impl_->admit(message, now);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const cancel_generation& message, time_point now) {
  impl_->cancel(message.id);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const prefix_matched& message, time_point now) {
  impl_->matched(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const blocks_leased& message, time_point now) {
  if (message.pool_gen == impl_->pool_gen) impl_->lease.answered(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const step_finished& message, time_point now) {
  impl_->finish_step(message, now);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const draft_finished& message, time_point now) {
  impl_->finish_drafts(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const drafter_changed& message, time_point now) {
  impl_->change_drafter(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const allocator_restarted& message, time_point now) {
  impl_->restart_allocator(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on_tick(time_point now) {
  impl_->expire(now);
  return impl_->pump(now);
}

scheduler::status scheduler::current() const {
  status now;
  now.running = static_cast<std::int32_t>(impl_->running.size());
  now.waiting = static_cast<std::int32_t>(impl_->waiting.size()) + impl_->matching;
  now.blocks_used = impl_->holds.distinct();
  now.blocks_leased = impl_->lease.size();
  now.blocks_obtainable = impl_->lease.obtainable();
  now.steps = impl_->last_step;
  now.step_in_flight = impl_->in_flight != nullptr;
  now.step_started = impl_->launched;
  return now;
}

}  // namespace tandem

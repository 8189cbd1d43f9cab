// What the scheduler knows of its draft sources: which are free, and what each has taken in.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/scheduler_impl.hpp"
#include "core/speculation/source_kind.hpp"
#include "core/ticket.hpp"

namespace tandem {
namespace {

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

}  // namespace

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

/// A sequence that the outcome does not speak of keeps what was known of it.
void scheduler::impl::note_taken_in(draft_method method, const draft_outcome& outcome) {
  std::unordered_map<slot_id, const draft_outcome::entry*> by_slot;
  if (outcome.ok) {
    for (const auto& entry : outcome.entries) by_slot[entry.slot] = &entry;
  }
  for (const auto& [rank, seq] : running) {
    source_view& view = seq->source(method);
    if (view.in_flight != outcome.step) continue;
    view.in_flight = 0;
    const auto found = by_slot.find(seq->slot);
    if (found == by_slot.end() || found->second->incarnation != seq->incarnation) {
      view.drafts = nullptr;
      continue;
    }
    view.known = std::min(found->second->known_rows, seq->length());
    // A source of text that claimed rows for its drafts would not be told those that are accepted.
    TANDEM_ASSERT(computes(method) || found->second->draft_rows == 0);
    view.drafts_with_kv = found->second->draft_rows;
  }
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
  note_taken_in(message.method, outcome);
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

}  // namespace tandem

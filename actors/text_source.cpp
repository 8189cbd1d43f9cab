#include "actors/text_source.hpp"

#include <algorithm>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {

namespace {

/// Of a source of text, an opening keeps no prompt alive.
slot_opening without_tokens(slot_opening opening) {
  opening.known = nullptr;
  opening.sampling = nullptr;
  return opening;
}

}  // namespace

void slot_changes::add(const draft_work& work) {
  for (const slot_id slot : work.closed) {
    std::erase_if(opened, [slot](const slot_opening& each) { return each.slot == slot; });
    if (std::find(closed.begin(), closed.end(), slot) == closed.end()) closed.push_back(slot);
  }
  for (const slot_opening& each : work.opened) opened.push_back(without_tokens(each));
  TANDEM_ASSERT(std::max(closed.size(), opened.size()) <= limits::kMaxSequencesInFlight);
}

void text_source::close(std::span<const slot_id> slots) {
  for (const slot_id slot : slots) slots_.erase(slot);
}

void text_source::open(std::span<const slot_opening> openings) {
  for (const slot_opening& each : openings)
    slots_.insert_or_assign(each.slot, slot_state{.opening = without_tokens(each), .length = 0, .text = nullptr});
}

void text_source::change_slots(const slot_changes& changes) {
  close(changes.closed);
  open(changes.opened);
}

text_source::slot_state& text_source::state_of(const proposal& wanted) {
  slot_state& state = slots_[wanted.slot];
  TANDEM_ASSERT(slots_.size() <= limits::kMaxSequencesInFlight);
  // Openings and closings say whose slot it is; another incarnation in between is the same text.
  if (state.text && wanted.first_position > 0) return state;
  state.length = 0;
  state.text = begin(state.opening);
  return state;
}

draft_outcome::entry text_source::take(const proposal& wanted, ticket* drafts) {
  slot_state& state = state_of(wanted);
  draft_outcome::entry entry{wanted.slot, wanted.incarnation, state.length, 0};
  if (wanted.first_position > state.length) return entry;  // there is a gap: drafts would be wrong
  const auto skip = static_cast<std::size_t>(state.length - wanted.first_position);
  if (skip < wanted.new_tokens.size()) {
    const auto fresh = std::span(wanted.new_tokens).subspan(skip);
    state.length += static_cast<std::int32_t>(fresh.size());
    state.text->append(fresh, std::min(wanted.unlearned, static_cast<std::int32_t>(fresh.size())));
  }
  entry.known_rows = state.length;
  if (wanted.k <= 0 || drafts == nullptr) return entry;
  TANDEM_ASSERT(wanted.ticket_row >= 0 && wanted.k <= limits::kMaxDraftTokens);
  // Too late: a slow source is not asked for nothing. Only an open ticket may be written: a stream may read a sealed
  // one.
  if (drafts->current() != ticket::state::open) return entry;
  // Drafts are not taken in, so the entry claims none: what is accepted of them comes with the next proposal.
  ticket::row row = state.text->propose(wanted.k, wanted.most);
  if (drafts->current() == ticket::state::open)
    drafts->fill(static_cast<std::size_t>(wanted.ticket_row)) = std::move(row);
  return entry;
}

draft_outcome text_source::draft(const draft_work& work) {
  draft_outcome outcome{.step = work.step};
  close(work.closed);
  open(work.opened);
  outcome.entries.reserve(work.proposals.size());
  for (const proposal& wanted : work.proposals) outcome.entries.push_back(take(wanted, work.drafts.get()));
  return outcome;
}

}  // namespace tandem

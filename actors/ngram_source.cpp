#include "actors/ngram_source.hpp"

#include <algorithm>
#include <span>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "core/ticket.hpp"

namespace tandem {

ngram_source::slot_state& ngram_source::state_of(const proposal& wanted) {
  auto found = slots_.find(wanted.slot);
  const bool starts_over = wanted.first_position == 0;
  if (found != slots_.end() && (starts_over || found->second.incarnation != wanted.incarnation)) {
    slots_.erase(found);
    found = slots_.end();
  }
  if (found == slots_.end()) {
    TANDEM_ASSERT(slots_.size() < limits::kMaxSequencesInFlight);
    slot_state fresh{wanted.incarnation, ngram_index(options_.min_ngram, options_.max_ngram)};
    found = slots_.emplace(wanted.slot, std::move(fresh)).first;
  }
  return found->second;
}

draft_outcome::entry ngram_source::take(const proposal& wanted, ticket* drafts) {
  auto& state = state_of(wanted);
  const std::int32_t known = state.index.size();
  draft_outcome::entry entry{wanted.slot, wanted.incarnation, known, 0};
  if (wanted.first_position > known) return entry;  // there is a gap: drafts would be wrong
  const auto skip = static_cast<std::size_t>(known - wanted.first_position);
  if (skip < wanted.new_tokens.size()) state.index.append(std::span(wanted.new_tokens).subspan(skip));
  entry.known_rows = state.index.size();
  if (wanted.k > 0 && drafts) {
    TANDEM_ASSERT(wanted.ticket_row >= 0 && wanted.k <= limits::kMaxDraftTokens);
    const auto found = state.index.find();
    const evidence_class evidence = evidence_of_match(found.length);
    auto tokens = state.index.continue_from(found, std::min<std::int32_t>(wanted.k, wanted.most[evidence]));
    entry.draft_rows = std::max<std::int32_t>(0, static_cast<std::int32_t>(tokens.size()) - 1);
    // Only an open ticket may be written: a stream may be reading a sealed one.
    if (drafts->current() == ticket::state::open)
      drafts->fill(static_cast<std::size_t>(wanted.ticket_row)) = {std::move(tokens), {}, evidence};
  }
  return entry;
}

draft_outcome ngram_source::draft(const draft_work& work) {
  draft_outcome outcome{.step = work.step};
  for (slot_id slot : work.closed) slots_.erase(slot);
  outcome.entries.reserve(work.proposals.size());
  for (const auto& wanted : work.proposals) outcome.entries.push_back(take(wanted, work.drafts.get()));
  return outcome;
}

}  // namespace tandem

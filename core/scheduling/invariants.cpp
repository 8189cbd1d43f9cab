// What must hold between any two messages.
#include <algorithm>

#include "core/assert.hpp"
#include "core/scheduling/scheduler_impl.hpp"

namespace tandem {

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

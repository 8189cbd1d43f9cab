#include "gpu/host/draft_runner.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace tandem::gpu::host {

draft_runner::draft_runner(model_executor& executor, compute_team& team, std::int32_t slots,
                           std::int32_t target_vocabulary)
    : executor_(executor),
      team_(team),
      slots_(slots, executor.cache().shape().blocks),
      sampler_(target_vocabulary, {}, team.threads()) {}

draft_outcome draft_runner::run(const draft_work& work) {
  slots_.apply(work.closed, work.opened, work.table_deltas);
  draft_outcome outcome;
  outcome.step = work.step;
  outcome.entries.resize(work.proposals.size());
  parts_.clear();
  for (std::size_t i = 0; i < work.proposals.size(); ++i) {
    const proposal& wanted = work.proposals[i];
    if (is_called_off(wanted)) {
      outcome.entries[i] = {wanted.slot, wanted.incarnation, wanted.first_position, 0};
      continue;
    }
    parts_.push_back(plan(wanted, work));
    parts_.back().out = &outcome.entries[i];
    *parts_.back().out = {wanted.slot, wanted.incarnation, parts_.back().known(), 0};
  }
  catch_up();
  draft_on(work);
  for (planned& part : parts_) forget_drafts(part);
  if (work.drafts) work.drafts->seal();
  return outcome;
}

/// Which drafts become known is told by the next proposal's first position.
void draft_runner::forget_drafts(planned& part) {
  if (part.filled == nullptr || !part.slot->keeps_counts) return;
  draft_sampler::forget(*part.slot, *part.filled);
  part.slot->last_drafts = part.filled->tokens;
}

draft_runner::planned draft_runner::plan(const proposal& wanted, const draft_work& work) {
  planned part;
  part.wanted = &wanted;
  part.slot = &slots_.at(wanted.slot);
  TANDEM_ASSERT(part.known() <= executor_.limits().max_positions);
  TANDEM_ASSERT(part.known() <= part.slot->capacity(executor_.cache().shape().block_size));
  part.slot->count_known(wanted.first_position, wanted.new_tokens);
  if (wanted.k == 0) return part;
  TANDEM_ASSERT(!wanted.new_tokens.empty() && work.drafts != nullptr && wanted.ticket_row >= 0);
  part.filled = &work.drafts->fill(static_cast<std::size_t>(wanted.ticket_row));
  return part;
}

/// All known tokens of all sequences, as many rows at once as the arena takes. The row of a sequence's last known token
/// gives its first draft.
void draft_runner::catch_up() {
  std::size_t next = 0;
  while (next < parts_.size()) {
    std::vector<sequence_rows> sequences;
    std::vector<yield> yields;
    std::int32_t rows = 0;
    while (next < parts_.size() && rows < executor_.limits().max_rows) {
      planned& part = parts_[next];
      const auto left = static_cast<std::int32_t>(part.wanted->new_tokens.size()) - part.caught_up;
      const std::int32_t now = std::min(left, executor_.limits().max_rows - rows);
      sequences.push_back({std::span(part.wanted->new_tokens)
                               .subspan(static_cast<std::size_t>(part.caught_up), static_cast<std::size_t>(now)),
                           part.wanted->first_position + part.caught_up, part.slot->table});
      part.caught_up += now;
      rows += now;
      if (now < left) break;
      if (part.filled != nullptr) yields.push_back({&part, rows - 1});
      ++next;
    }
    executor_.forward(sequences);
    sample_all(yields);
  }
}

/// One forward per further draft, batched across the sequences that still want one.
void draft_runner::draft_on(const draft_work& work) {
  if (!work.drafts) return;
  for (std::int32_t drafts = 1; drafts < limits::kMaxDraftTokens; ++drafts) {
    if (work.drafts->current() != ticket::state::open) return;
    const std::vector<planned*> parts = able_to_draft(drafts);
    if (parts.empty()) return;
    const auto most = static_cast<std::size_t>(executor_.limits().max_rows);
    for (std::size_t begin = 0; begin < parts.size(); begin += most)
      draft_rows(std::span(parts).subspan(begin, std::min(most, parts.size() - begin)));
  }
}

/// Sequences that have this many drafts, want more, and have a page and a position for the last one.
std::vector<draft_runner::planned*> draft_runner::able_to_draft(std::int32_t drafts_so_far) {
  std::vector<planned*> able;
  for (planned& part : parts_) {
    if (part.filled == nullptr || part.ended || part.drafts() != drafts_so_far || part.wanted->k <= drafts_so_far)
      continue;
    const std::int32_t capacity =
        std::min(part.slot->capacity(executor_.cache().shape().block_size), executor_.limits().max_positions);
    if (part.known() + drafts_so_far <= capacity) able.push_back(&part);
  }
  return able;
}

void draft_runner::draft_rows(std::span<planned* const> parts) {
  std::vector<sequence_rows> sequences;
  std::vector<yield> yields;
  for (planned* part : parts) {
    yields.push_back({part, static_cast<std::int32_t>(sequences.size())});
    sequences.push_back({std::span<const token_id>(part->filled->tokens).last(1), part->known() + part->drafts() - 1,
                         part->slot->table});
  }
  executor_.forward(sequences);
  for (planned* part : parts) part->out->draft_rows = part->drafts();
  sample_all(yields);
}

void draft_runner::sample_all(std::span<const yield> yields) {
  const auto vocabulary = static_cast<std::size_t>(executor_.shape().vocabulary_size);
  const auto batch = static_cast<std::size_t>(executor_.max_logit_rows());
  for (std::size_t begin = 0; begin < yields.size(); begin += batch) {
    const auto some = yields.subspan(begin, std::min(batch, yields.size() - begin));
    std::vector<std::int32_t> rows;
    for (const yield& each : some) rows.push_back(each.row);
    const std::span<float> logits = executor_.logits(rows);
    const auto draw = [&](std::int64_t first, std::int64_t end, std::int32_t thread) {
      for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(end); ++i) {
        planned& part = *some[i].part;
        part.ended = !sampler_.draw(*part.slot, *part.filled, logits.subspan(i * vocabulary, vocabulary),
                                    part.known() + part.drafts(), thread);
      }
    };
    team_.parallel_for(static_cast<std::int64_t>(some.size()), 1, draw);
  }
}

}  // namespace tandem::gpu::host

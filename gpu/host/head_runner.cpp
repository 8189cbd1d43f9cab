#include "gpu/host/head_runner.hpp"

#include <span>

#include "core/assert.hpp"
#include "gpu/host/draft_sampler.hpp"

namespace tandem::gpu::host {
namespace {

/// Drafts are drawn with the target's own counts, which must not keep them, also when drafting fails.
class drawn_drafts {
 public:
  explicit drawn_drafts(std::span<const head_run> runs) : runs_(runs) {}
  drawn_drafts(const drawn_drafts&) = delete;
  drawn_drafts& operator=(const drawn_drafts&) = delete;
  ~drawn_drafts() {
    for (const head_run& each : runs_) draft_sampler::forget(*each.state, *each.filled);
  }

 private:
  std::span<const head_run> runs_;
};

}  // namespace

head_runner::head_runner(draft_head& head, slot_table& target_slots, std::int32_t slots, std::int32_t blocks)
    : head_(head), target_slots_(target_slots), slots_(slots, blocks) {}

draft_outcome head_runner::run(const draft_work& work) {
  slots_.apply(work.closed, work.opened, work.table_deltas);
  draft_outcome outcome;
  outcome.step = work.step;
  runs_.clear();
  for (const proposal& wanted : work.proposals) {
    const bool called_off = is_called_off(wanted);
    const auto taken_in = called_off ? 0 : static_cast<std::int32_t>(wanted.new_tokens.size());
    outcome.entries.push_back({wanted.slot, wanted.incarnation, wanted.first_position + taken_in, 0});
    if (wanted.k > 0 && !called_off) add_run(wanted, work);
  }
  const auto wanted = [&work] { return work.drafts->current() == ticket::state::open; };
  // Behind an expired ticket the target has gone on: its newer rows may lie in blocks that this item knows nothing of.
  if (!runs_.empty() && wanted()) {
    const drawn_drafts drawn(runs_);
    head_.draft(runs_, wanted);
  }
  if (work.drafts) work.drafts->seal();
  return outcome;
}

/// A slot whose first step is still to come has no hidden states yet: its run stays empty.
void head_runner::add_run(const proposal& wanted, const draft_work& work) {
  TANDEM_ASSERT(!wanted.new_tokens.empty() && work.drafts != nullptr && wanted.ticket_row >= 0);
  const slot_state& told = slots_.at(wanted.slot);
  slot_state* state = target_slots_.find(wanted.slot, told.slot_gen);
  if (state == nullptr) return;
  head_run run;
  run.slot = wanted.slot;
  run.state = state;
  run.table = told.table;
  run.known = wanted.first_position + static_cast<std::int32_t>(wanted.new_tokens.size());
  run.last = wanted.new_tokens.back();
  run.k = wanted.k;
  run.filled = &work.drafts->fill(static_cast<std::size_t>(wanted.ticket_row));
  runs_.push_back(run);
}

}  // namespace tandem::gpu::host

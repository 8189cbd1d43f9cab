// Planning the next step: who gets rows and blocks.
#include <algorithm>
#include <utility>

#include "core/scheduling/row_planner.hpp"
#include "core/scheduling/scheduler_impl.hpp"

namespace tandem {

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

}  // namespace tandem

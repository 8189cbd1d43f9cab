// Beam search as the scheduler runs it: every lane of the search is a sequence. They get their slots together, are
// preempted together and end together; between two steps of the search each computes what it knows, as any sequence.
#include "core/scheduling/beam_lanes.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/commit.hpp"
#include "core/scheduling/scheduler_impl.hpp"

namespace tandem {
namespace {

beam_settings settings_of(const admit_sequence& message, const scheduler_options& options) {
  beam_settings settings;
  settings.width = message.request->n;
  settings.prompt_length = static_cast<std::int32_t>(message.prompt->size());
  settings.max_tokens = message.max_tokens;
  settings.params = *message.request->beams;
  settings.end_tokens = options.end_tokens;
  settings.ignore_eos = message.request->stopping.ignore_eos;
  settings.top_logprobs = message.request->logprobs.top;
  return settings;
}

/// Leading entries that are the same block in both.
std::size_t common_length(const std::vector<block_id>& a, const std::vector<block_id>& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

void scheduler::impl::join_beams(sequence& seq, const admit_sequence& message) {
  choice_group& group = *seq.group;
  if (!group.beams) group.beams = std::make_unique<beam_lanes>(settings_of(message, options), message.request->n);
  auto greedy = std::make_shared<sampling_params>(*seq.sampling);
  greedy->temperature = 0;  // what the device draws is not looked at
  seq.sampling = std::move(greedy);
  seq.parked = true;
  if (group.beams->end_wanted) finish_beams(group);
}

bool scheduler::impl::beams_are_complete(const choice_group& group) const {
  return group.members.size() == group.beams->candidates.size();
}

/// The lanes with a hypothesis, by lane.
std::vector<sequence*> scheduler::impl::live_lanes(const choice_group& group) const {
  std::vector<sequence*> live;
  for (sequence* lane : group.members) {
    if (group.beams->search.in_lane(lane->id.choice) != nullptr) live.push_back(lane);
  }
  return live;
}

/// True also for a leader that waits alone, because the allocator died that it had asked for its prefix.
bool scheduler::impl::beams_have_started(const choice_group& group) const {
  const auto waits = [](const sequence* lane) { return lane->at == sequence::stage::waiting; };
  return !std::all_of(group.members.begin(), group.members.end(), waits);
}

bool scheduler::impl::beams_may_start(const choice_group& group, std::int32_t busy) const {
  const auto width = static_cast<std::int32_t>(group.members.size());
  const std::int32_t need = blocks_for(group.members.front()->length() + 1) + 2 * width + busy;
  return busy + width <= options.max_num_seqs && (busy == 0 || lease.obtainable() >= need);
}

/// All lanes get a slot at once, so that no two searches wait for each other's.
void scheduler::impl::start_beams(choice_group& group) {
  for (sequence* lane : group.members) waiting.erase({lane->rank, lane});
  sequence* const leader = live_lanes(group).front();
  for (sequence* lane : group.members) {
    lane->parked = lane != leader;
    if (lane != leader) run(*lane);
  }
  begin(*leader);
}

/// After a preemption: what the leader has computed of the prompt, the other lanes hold too.
void scheduler::impl::wake_lanes(choice_group& group) {
  if (!group.beams->due.empty()) return;
  const std::vector<sequence*> live = live_lanes(group);
  if (live.empty() || !holds_prompt(*live.front())) return;
  for (sequence* lane : live) {
    const bool waits = lane != live.front() && lane->parked && lane->table.empty() && lane->pending() > 0;
    if (!waits) continue;
    if (shareable_blocks(*lane) > 0) take_prompt(*lane);
    lane->parked = false;
  }
}

/// What a step did for one lane. It has no tokens to tell: the search decides when all lanes have spoken.
void scheduler::impl::settle_lane(const planned_rows& part, slot_outcome slot, time_point now) {
  sequence& lane = *part.seq;
  TANDEM_ASSERT(slot.slot == lane.slot && slot.slot_gen == lane.slot_gen && slot.rows_done <= lane.pending());
  stamp_times(*lane.group->members.front(), now, !slot.tokens.empty());
  totals.prompt_tokens += std::max(0, std::min(lane.computed + slot.rows_done, lane.prompt_length()) - lane.computed);
  lane.computed += slot.rows_done;
  publish(lane);
  if (slot.tokens.empty()) return;
  TANDEM_ASSERT(lane.pending() == 0 && slot.logprobs.size() == 1);
  lane.parked = true;
  lane.group->beams->candidates[static_cast<std::size_t>(lane.id.choice)] = std::move(slot.logprobs.front().top);
}

/// Behind a step: the search goes on when every lane has its candidates, or ends.
void scheduler::impl::settle_beams(choice_group& group) {
  beam_lanes& beams = *group.beams;
  if (beams.end_wanted) return finish_beams(group);
  const std::vector<sequence*> live = live_lanes(group);
  const auto has_spoken = [&](const sequence* lane) {
    return beams.candidates[static_cast<std::size_t>(lane->id.choice)].has_value();
  };
  if (!beams.due.empty() || !std::all_of(live.begin(), live.end(), has_spoken)) return;
  for (sequence* lane : live) ++lane->stats.steps;
  beams.due = beams.search.advance(beams.take_candidates());
  if (beams.search.over()) finish_beams(group);
}

/// Blocks that the due steps write their last, partly filled block into.
std::int32_t scheduler::impl::blocks_due(const choice_group& group) const {
  std::int32_t count = 0;
  for (const beam_step& step : group.beams->due) {
    const sequence& parent = *group.members[static_cast<std::size_t>(step.parent)];
    const sequence& lane = *group.members[static_cast<std::size_t>(step.lane)];
    const auto full = static_cast<std::size_t>(parent.computed / options.block_size);
    const bool has_tail = parent.computed % options.block_size != 0;
    if (step.lane != step.parent && has_tail && lane.table.size() <= full) ++count;
  }
  return count;
}

/// Takes the steps of a search that were decided, when there are blocks for them.
void scheduler::impl::take_due_steps(choice_group& group) {
  beam_lanes& beams = *group.beams;
  if (beams.due.empty()) return;
  if (const std::int32_t missing = blocks_due(group) - lease.size(); missing > 0) {
    lease.note_unmet(missing);
    return make_room(*group.members.front());
  }
  for (const beam_step& step : beams.due) {
    if (step.lane != step.parent)
      fork(*group.members[static_cast<std::size_t>(step.lane)], *group.members[static_cast<std::size_t>(step.parent)]);
  }
  for (const beam_step& step : std::exchange(beams.due, {})) {
    sequence& lane = *group.members[static_cast<std::size_t>(step.lane)];
    lane.known.push_back(step.token);
    lane.parked = false;
  }
  for (sequence* lane : group.members) {
    if (beams.search.in_lane(lane->id.choice) == nullptr) idle(*lane);
  }
}

/// `lane` becomes what `parent` is: it holds the same full blocks, and its own copy of the last one.
void scheduler::impl::fork(sequence& lane, const sequence& parent) {
  TANDEM_ASSERT(!lane.in_step && parent.pending() == 0);
  const auto full = static_cast<std::size_t>(parent.computed / options.block_size);
  const bool has_tail = parent.computed % options.block_size != 0;
  std::vector<block_id> table(parent.table.begin(), parent.table.begin() + static_cast<std::ptrdiff_t>(full));
  const std::size_t common = std::min(common_length(lane.table, table), full);
  const auto first = static_cast<std::ptrdiff_t>(common);
  hold_again({table.begin() + first, table.end()});
  const bool keeps_tail = has_tail && lane.table.size() > full;
  const auto dropped = static_cast<std::ptrdiff_t>(std::min(full, lane.table.size()));
  let_go({lane.table.begin() + first, keeps_tail ? lane.table.begin() + dropped : lane.table.end()});
  if (has_tail) {
    table.push_back(keeps_tail ? lane.table[full] : take_block());
    lane.copy_from = parent.table[full];
  }
  lane.table = std::move(table);
  lane.table_sent = std::min(lane.table_sent, static_cast<std::int32_t>(common));
  lane.known = parent.known;
  lane.computed = parent.computed;
  lane.published = parent.published;
  lane.published_draft = parent.published_draft;
}

/// No hypothesis is left for the lane; it keeps its slot.
void scheduler::impl::idle(sequence& lane) {
  if (lane.table.empty() && lane.output_length() == 0) return;
  release(lane);
  lane.parked = true;
  lane.known = *lane.prompt;
  lane.computed = 0;
  lane.table_sent = 0;
  lane.published = 0;
  lane.published_draft = 0;
}

/// Behind stop_running of every lane: each knows what its hypothesis says, and will compute it anew.
void scheduler::impl::rewind_beams(choice_group& group) {
  beam_lanes& beams = *group.beams;
  beams.due.clear();
  beams.take_candidates();
  for (sequence* lane : group.members) {
    lane->known = *lane->prompt;
    lane->parked = true;
    const beam_hypothesis* hypothesis = beams.search.in_lane(lane->id.choice);
    if (hypothesis == nullptr) continue;
    lane->known.insert(lane->known.end(), hypothesis->tokens.begin(), hypothesis->tokens.end());
  }
}

void scheduler::impl::preempt_beams(choice_group& group) {
  for (sequence* lane : group.members) {
    if (lane->at == sequence::stage::running) stop_running(*lane);
    if (lane->at == sequence::stage::matching) {
      --matching;
      ++lane->incarnation;
    }
    lane->at = sequence::stage::waiting;
    waiting.emplace(lane->rank, lane);
  }
  rewind_beams(group);
  ++group.members.front()->stats.preemptions;
  ++totals.preemptions;
}

/// At the next moment when no lane is in a step.
void scheduler::impl::end_beams_soon(choice_group& group, finish end) {
  if (!group.beams->end_wanted) group.beams->end_wanted = std::move(end);
  const auto busy = [](const sequence* lane) { return lane->in_step; };
  if (!beams_are_complete(group) || std::any_of(group.members.begin(), group.members.end(), busy)) return;
  finish_beams(group);
}

/// Tells the best hypotheses, choice 0 the best, and ends every lane.
void scheduler::impl::finish_beams(choice_group& group) {
  if (!beams_are_complete(group)) return;
  const std::vector<sequence*> lanes = group.members;
  const std::vector<beam_hypothesis> best = group.beams->search.best();
  const std::optional<finish> wanted = group.beams->end_wanted;
  const sequence_stats times = lanes.front()->stats;
  for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
    const sequence& lane = *lanes[rank];
    static const beam_hypothesis kNothing;
    const beam_hypothesis& hypothesis = rank < best.size() ? best[rank] : kNothing;
    tokens_committed::entry entry = beam_entry(lane, hypothesis, wanted, options);
    entry.stats = times;
    if (rank > 0) entry.stats.preemptions = 0;
    entry.stats.completion_tokens = static_cast<std::int32_t>(hypothesis.tokens.size());
    entry.stats.steps = lane.stats.steps;  // of the lane, not of the beam: summed, they are those of the search
    totals.generated_tokens += entry.stats.completion_tokens;
    const finish_reason reason = entry.end->reason;
    tell(lane, std::move(entry));
    retire(*lanes[rank], reason);
  }
}

}  // namespace tandem

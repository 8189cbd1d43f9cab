// How sequences start, pause and end, and how their blocks come back.
#include <algorithm>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "core/scheduling/commit.hpp"
#include "core/scheduling/scheduler_impl.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem {

void scheduler::impl::start_waiting() {
  // Slots in use, and those of choices that wait for their prompt: younger sequences do not take them.
  std::int32_t busy = static_cast<std::int32_t>(running.size()) + matching;
  for (auto next = waiting.begin(); next != waiting.end() && busy < options.max_num_seqs; ++busy) {
    sequence& seq = *next->second;
    ++next;
    if (waits_for_prompt(seq)) continue;
    if (is_lane(seq) && !beams_have_started(*seq.group)) {
      choice_group& group = *seq.group;
      if (!beams_are_complete(group)) continue;  // its other lanes are on their way here
      if (!beams_may_start(group, busy)) return;
      next = waiting.upper_bound({group.members.back()->rank, group.members.back()});
      busy += static_cast<std::int32_t>(group.members.size()) - 1;
      start_beams(group);
      continue;
    }
    // Headroom of a block for each running sequence, so that a newcomer is not the next victim. Alone it always fits.
    const std::int32_t shared = prompt_is_computed(seq) ? shareable_blocks(seq) : 0;
    const std::int32_t need = blocks_for(seq.length() + 1) - shared + busy;
    // The leader of a search that has its slots comes back after the allocator's death: its lanes wait for it alone.
    if (busy > 0 && !is_lane(seq) && lease.obtainable() < need) return;
    waiting.erase({seq.rank, &seq});
    begin(seq);
  }
}

void scheduler::impl::begin(sequence& seq) {
  const bool reuse =
      options.prefix_caching && seq.request->logprobs.prompt_top < 0 && seq.length() > options.block_size;
  // What it generated before a preemption may be found as well; else the blocks of another choice are as good.
  const bool longer_match = reuse && seq.output_length() > 0;
  if (!longer_match && prompt_is_computed(seq)) return run_behind_prompt(seq);
  if (!reuse) {
    seq.first_match_done = true;  // what a later life finds is its own
    run(seq);
    return;
  }
  seq.at = sequence::stage::matching;
  ++matching;
  match_prefix match;
  match.id = seq.id;
  match.incarnation = seq.incarnation;
  match.tokens = seq.output_length() == 0 ? seq.prompt : std::make_shared<const std::vector<token_id>>(seq.known);
  match.salt = seq.salt;
  match.max_tokens = seq.length() - 1;
  match.pool_gen = pool_gen;
  out.matches.push_back(std::move(match));
}

void scheduler::impl::run(sequence& seq) {
  TANDEM_ASSERT(!free_slots.empty() && seq.slot == kNoSlot);
  seq.at = sequence::stage::running;
  seq.slot = free_slots.back();
  free_slots.pop_back();
  seq.slot_gen = ++slot_gens[static_cast<std::size_t>(seq.slot)];
  seq.length_at_start = seq.length();
  running.emplace(seq.rank, &seq);
  if (!seq.started) note_started(seq);
}

/// What the slot's life added to the sequence and the source that learns from outputs was not told in proposals: each
/// token of an output is learned once, whoever drafted it and however often the sequence was preempted.
void scheduler::impl::tell_output(const sequence& seq) {
  if (is_lane(seq)) return;  // most of it is never told to anybody
  const auto learns = [](draft_method method) { return method == draft_method::suffix; };
  if (std::none_of(options.drafters.begin(), options.drafters.end(), learns)) return;
  const std::int32_t told = seq.sources[static_cast<std::size_t>(draft_method::suffix)].told;
  const std::int32_t from = std::max(seq.length_at_start, told);
  if (from >= seq.length()) return;
  const std::int32_t context = std::min(from, limits::kMaxSuffixContext);
  if (!out.outputs) out.outputs.emplace();
  out.outputs->entries.push_back(
      {seq.salt, {seq.known.begin() + (from - context), seq.known.end()}, seq.length() - from});
}

/// Gives back slot and blocks; the sequence's tokens stay.
void scheduler::impl::stop_running(sequence& seq) {
  TANDEM_ASSERT(seq.at == sequence::stage::running && !seq.in_step);
  tell_output(seq);
  release(seq);
  running.erase({seq.rank, &seq});
  if (seq.opened) closed.target.push_back(seq.slot);
  for (const draft_method method : options.drafters) {
    if (seq.source(method).opened) closed.sources[static_cast<std::size_t>(method)].push_back(seq.slot);
    seq.source(method) = source_view{};
  }
  free_slots.push_back(seq.slot);
  seq.slot = kNoSlot;
  seq.opened = false;
  seq.copy_from = kNoBlock;
  seq.table_sent = 0;
  seq.computed = 0;
  seq.published = 0;
  seq.published_draft = 0;
  ++seq.incarnation;
}

void scheduler::impl::preempt(sequence& seq) {
  if (is_lane(seq)) return preempt_beams(*seq.group);
  stop_running(seq);
  seq.at = sequence::stage::waiting;
  waiting.emplace(seq.rank, &seq);
  ++seq.stats.preemptions;
  ++totals.preemptions;
}

void scheduler::impl::end_soon(sequence& seq, finish_reason reason) {
  if (is_lane(seq)) return end_beams_soon(*seq.group, finish{.reason = reason});
  if (seq.in_step) {
    if (!seq.end_wanted) seq.end_wanted = finish{.reason = reason};
    return;
  }
  end_now(seq, finish{.reason = reason});
}

void scheduler::impl::end_now(sequence& seq, finish end) {
  const finish_reason reason = end.reason;
  auto entry = end_entry(seq, std::move(end));
  entry.stats = seq.stats;
  tell(seq, std::move(entry));
  retire(seq, reason);
}

void scheduler::impl::retire(sequence& seq, finish_reason reason) {
  keep_prompt(seq);
  if (seq.at == sequence::stage::running) stop_running(seq);
  if (seq.at == sequence::stage::matching) --matching;  // its pinned blocks go back when the answer comes
  if (seq.at == sequence::stage::waiting) waiting.erase({seq.rank, &seq});
  leave_group(seq);
  out.retired.push_back({seq.id, reason});
  sequences.erase(seq.id);
}

/// "Retiring is not releasable": a draft stream may still write the draft pages of these blocks.
void scheduler::impl::release(sequence& seq) {
  if (seq.table.empty()) return;
  fenced_blocks held;
  for (const draft_method method : options.drafters) {
    const step_id under_way = seq.source(method).in_flight;
    if (computes(method) && under_way != 0) held.until[index_of(method)] = under_way;
  }
  std::vector<block_id> blocks = std::exchange(seq.table, {});
  if (held.waits()) {
    held.blocks = std::move(blocks);
    fenced.push_back(std::move(held));
    return;
  }
  let_go(blocks);
}

/// The allocator has one more hold on each, for us.
void scheduler::impl::hold_pinned(const std::vector<block_id>& blocks) {
  lease.note_pinned(holds.add(blocks));
}

/// Out of the lease into a table.
block_id scheduler::impl::take_block() {
  const block_id block = lease.take();
  const std::int32_t fresh = holds.add({&block, 1});
  TANDEM_ASSERT(fresh == 1);
  return block;
}

void scheduler::impl::let_go(const std::vector<block_id>& blocks) {
  if (blocks.empty()) return;
  if (!out.release) out.release.emplace(release_blocks{pool_gen, {}});
  out.release->blocks.insert(out.release->blocks.end(), blocks.begin(), blocks.end());
  lease.note_released(holds.drop(blocks));
}

/// Anew, from what holds blocks: for check().
block_holds scheduler::impl::count_holds() const {
  block_holds counted(options.num_kv_blocks);
  for (const auto& [id, seq] : sequences) counted.add(seq->table);
  for (const auto& [id, group] : groups) counted.add(group.kept.blocks);
  for (const fenced_blocks& held : fenced) counted.add(held.blocks);
  return counted;
}

void scheduler::impl::release_fenced(draft_method method, step_id step_done) {
  for (fenced_blocks& held : fenced) {
    if (held.until[index_of(method)] <= step_done) held.until[index_of(method)] = 0;
    if (!held.waits()) let_go(std::exchange(held.blocks, {}));
  }
  std::erase_if(fenced, [](const fenced_blocks& held) { return held.blocks.empty(); });
}

/// Full blocks of committed tokens become findable; a block whose draft page filled up later is published again.
void scheduler::impl::publish(sequence& seq) {
  if (!options.prefix_caching) return;
  resolve_drafts(seq);
  const std::int32_t size = options.block_size;
  // Of what a beam search tried, only the prompt is worth finding.
  const std::int32_t full = (is_lane(seq) ? std::min(seq.computed, seq.prompt_length()) : seq.computed) / size;
  const std::int32_t full_draft = std::min(full, seq.source(draft_method::draft_model).known / size);
  const std::int32_t first =
      full_draft > seq.published_draft ? std::min(seq.published, seq.published_draft) : seq.published;
  if (!out.publish) out.publish.emplace(publish_blocks{pool_gen, {}});
  for (std::int32_t i = first; i < full; ++i) {
    const bool is_new = i >= seq.published;
    const bool draft_is_new = i >= seq.published_draft && i < full_draft;
    if (!is_new && !draft_is_new) continue;
    const auto at = static_cast<std::size_t>(i);
    publish_blocks::entry entry;
    entry.block = seq.table[at];
    entry.parent = i == 0 ? kNoBlock : seq.table[at - 1];
    entry.salt = seq.salt;
    entry.tokens =
        std::make_shared<const std::vector<token_id>>(seq.known.begin() + i * size, seq.known.begin() + (i + 1) * size);
    entry.draft_valid = i < full_draft;
    out.publish->entries.push_back(std::move(entry));
  }
  seq.published = std::max(seq.published, full);
  seq.published_draft = std::max(seq.published_draft, full_draft);
}

}  // namespace tandem

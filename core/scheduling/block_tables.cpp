// The blocks that sequences hold: out of the lease, shared, fenced, published, given back.
#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/scheduler_impl.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem {

std::int32_t scheduler::impl::lease_target() const {
  const auto live = static_cast<std::int32_t>(running.size()) + matching;
  const std::int32_t per_sequence = blocks_for(options.max_draft_tokens + 1) + 1;
  const std::int32_t useful = live * per_sequence + blocks_for(options.max_num_batched_tokens);
  // A small pool is not drained into the lease: that would evict its cached prefixes without need.
  return std::min(useful, std::max(2, options.num_kv_blocks / 8));
}

/// Extends the table to hold `tokens` positions as far as the lease goes; true when it does.
bool scheduler::impl::cover(sequence& seq, std::int32_t tokens) {
  const std::int32_t need = blocks_for(tokens);
  while (static_cast<std::int32_t>(seq.table.size()) < need && lease.size() > 0) seq.table.push_back(take_block());
  return static_cast<std::int32_t>(seq.table.size()) >= need;
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

}  // namespace tandem

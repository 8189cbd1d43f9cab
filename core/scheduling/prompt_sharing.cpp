// The choices of one request compute their prompt once: the first one leads, the others wait and then hold its full
// blocks too. Nobody waits for a younger choice, and for an older one only as long as that one has its slot.
#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/scheduler_impl.hpp"

namespace tandem {

void scheduler::impl::join_group(sequence& seq) {
  if (seq.request->sequences() == 1 && !seq.request->beams) return;
  const auto [at, is_new] = groups.try_emplace(seq.id.request);
  choice_group& group = at->second;
  if (is_new) group.unstarted = seq.request->sequences();
  TANDEM_ASSERT(static_cast<std::int32_t>(group.members.size()) < seq.request->sequences());
  group.members.push_back(&seq);
  seq.group = &group;
}

void scheduler::impl::leave_group(sequence& seq) {
  if (seq.group == nullptr) return;
  choice_group& group = *seq.group;
  if (!seq.started) note_started(seq);
  std::erase(group.members, &seq);
  if (!group.members.empty() || group.unstarted > 0) return;
  groups.erase(seq.id.request);
}

void scheduler::impl::note_started(sequence& seq) {
  seq.started = true;
  if (seq.group == nullptr || --seq.group->unstarted > 0) return;
  seq.group->prompt_scores = {};
  drop_kept(*seq.group);
}

/// Blocks of the prompt that its choices can share: full ones, and one token is left to be computed.
std::int32_t scheduler::impl::shareable_blocks(const sequence& seq) const {
  return seq.group == nullptr ? 0 : (seq.prompt_length() - 1) / options.block_size;
}

bool scheduler::impl::holds_prompt(const sequence& seq) const {
  const bool has_scores = !seq.scores_prompt();
  return seq.at == sequence::stage::running && has_scores && seq.computed >= shareable_blocks(seq) * options.block_size;
}

/// An older choice of the same request is computing the prompt: its blocks are worth the wait.
bool scheduler::impl::waits_for_prompt(const sequence& seq) const {
  if (shareable_blocks(seq) == 0 || is_lane(seq) || prompt_is_computed(seq)) return false;
  const auto& members = seq.group->members;
  const auto self = std::find(members.begin(), members.end(), &seq);
  return std::any_of(members.begin(), self, [](auto* older) { return older->at != sequence::stage::waiting; });
}

bool scheduler::impl::prompt_is_computed(const sequence& seq) const {
  if (shareable_blocks(seq) == 0) return false;
  const auto has_it = [&](const sequence* other) { return other != &seq && holds_prompt(*other); };
  const choice_group& group = *seq.group;
  return !group.kept.blocks.empty() || std::any_of(group.members.begin(), group.members.end(), has_it);
}

leading_blocks scheduler::impl::prompt_blocks_of(const sequence& seq) const {
  const std::int32_t count = shareable_blocks(seq);
  const std::int32_t draft_known = seq.sources[index_of(draft_method::draft_model)].known;
  leading_blocks lead;
  lead.blocks.assign(seq.table.begin(), seq.table.begin() + count);
  lead.published = std::min(seq.published, count);
  lead.published_draft = std::min(seq.published_draft, count);
  lead.draft_known = std::min(draft_known / options.block_size, count) * options.block_size;
  return lead;
}

leading_blocks scheduler::impl::computed_prompt(const sequence& seq) const {
  for (const sequence* other : seq.group->members) {
    if (other != &seq && holds_prompt(*other)) return prompt_blocks_of(*other);
  }
  return seq.group->kept;
}

void scheduler::impl::hold_again(const std::vector<block_id>& blocks) {
  const std::int32_t fresh = holds.add(blocks);
  TANDEM_ASSERT(fresh == 0);  // else they may be somebody else's by now
  if (!out.share) out.share.emplace(share_blocks{pool_gen, {}});
  out.share->blocks.insert(out.share->blocks.end(), blocks.begin(), blocks.end());
}

/// The sequence goes on behind the prompt that another choice has computed.
void scheduler::impl::take_prompt(sequence& seq) {
  leading_blocks lead = computed_prompt(seq);
  TANDEM_ASSERT(!lead.blocks.empty());
  hold_again(lead.blocks);
  seq.table = std::move(lead.blocks);
  seq.computed = static_cast<std::int32_t>(seq.table.size()) * options.block_size;
  seq.published = lead.published;
  seq.published_draft = lead.published_draft;
  seq.source(draft_method::draft_model).known = lead.draft_known;
  if (!std::exchange(seq.first_match_done, true)) seq.stats.cached_tokens = seq.computed;
}

void scheduler::impl::run_behind_prompt(sequence& seq) {
  take_prompt(seq);
  repeat_prompt_scores(seq);
  run(seq);
}

/// What another choice was told about the prompt holds for this one, too.
void scheduler::impl::repeat_prompt_scores(sequence& seq) {
  const auto& scores = seq.group->prompt_scores;
  const auto known = static_cast<std::int32_t>(scores.size());
  if (seq.request->logprobs.prompt_top < 0 || known <= seq.prompt_scored) return;
  TANDEM_ASSERT(known >= seq.computed);
  tokens_committed::entry entry;
  entry.id = seq.id;
  entry.first_index = seq.output_length();
  entry.prompt_logprobs.assign(scores.begin() + seq.prompt_scored, scores.end());
  tell(seq, std::move(entry));
  seq.prompt_scored = known;
}

/// `scores` reach up to seq.prompt_scored.
void scheduler::impl::remember_prompt_scores(const sequence& seq, const std::vector<token_logprobs>& scores) {
  if (seq.group == nullptr || seq.group->unstarted == 0) return;
  auto& known = seq.group->prompt_scores;
  const auto fresh = seq.prompt_scored - static_cast<std::int32_t>(known.size());
  if (fresh <= 0) return;
  TANDEM_ASSERT(fresh <= static_cast<std::int32_t>(scores.size()));
  known.insert(known.end(), scores.end() - fresh, scores.end());
}

/// `seq` is about to end. Its prompt stays for the choices that have not started, unless another one has it.
void scheduler::impl::keep_prompt(const sequence& seq) {
  if (seq.group == nullptr || shareable_blocks(seq) == 0 || !holds_prompt(seq)) return;
  choice_group& group = *seq.group;
  if (group.unstarted == 0 || prompt_is_computed(seq)) return;
  group.kept = prompt_blocks_of(seq);
  hold_again(group.kept.blocks);
}

/// False: there was nothing to drop.
bool scheduler::impl::drop_kept(choice_group& group) {
  const leading_blocks kept = std::exchange(group.kept, {});
  if (kept.blocks.empty()) return false;
  let_go(kept.blocks);
  return true;
}

}  // namespace tandem

#include "gpu/host/slot_table.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/sampling/bad_words.hpp"

namespace tandem::gpu::host {
namespace {

bool looks_at_earlier_tokens(const sampling_params& params) {
  return params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F || params.frequency_penalty != 0.0F;
}

}  // namespace

void slot_state::count_known(std::int32_t first_position, std::span<const token_id> tokens) {
  if (!keeps_counts) return;
  const std::int32_t accepted = std::max(0, first_position - counted);
  TANDEM_ASSERT(static_cast<std::size_t>(accepted) <= last_drafts.size());
  const std::vector<token_id> drafts = std::exchange(last_drafts, {});
  for (std::int32_t i = 0; i < accepted; ++i) count(drafts[static_cast<std::size_t>(i)]);
  const auto end = first_position + static_cast<std::int32_t>(tokens.size());
  while (counted < end) count(tokens[static_cast<std::size_t>(counted - first_position)]);
}

void slot_state::note_output(std::span<const token_id> tokens) {
  if (output_kept == 0) return;
  recent_output.insert(recent_output.end(), tokens.begin(), tokens.end());
  const std::size_t kept = std::min(output_kept, recent_output.size());
  recent_output.erase(recent_output.begin(), recent_output.end() - static_cast<std::ptrdiff_t>(kept));
}

/// The token at position `counted`.
void slot_state::count(token_id token) {
  if (counted++ < prompt_length) {
    counts.add_prompt({&token, 1});
  } else {
    counts.add_output(token);
  }
}

slot_table::slot_table(std::int32_t slots, std::int32_t num_blocks)
    : slots_(static_cast<std::size_t>(slots)), num_blocks_(num_blocks) {}

slot_state& slot_table::any(slot_id slot) {
  TANDEM_ASSERT(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size());
  return slots_[static_cast<std::size_t>(slot)];
}

slot_state& slot_table::at(slot_id slot) {
  slot_state& state = any(slot);
  TANDEM_ASSERT(state.open);
  return state;
}

slot_state* slot_table::find(slot_id slot, std::uint32_t slot_gen) {
  slot_state& state = any(slot);
  return state.open && state.slot_gen == slot_gen ? &state : nullptr;
}

void slot_table::apply(std::span<const slot_id> closed, std::span<const slot_opening> opened,
                       std::span<const table_delta> deltas) {
  for (const slot_id slot : closed) any(slot) = slot_state{};
  for (const slot_opening& opening : opened) open(opening);
  for (const table_delta& delta : deltas) set_table(delta);
}

void slot_table::open(const slot_opening& opening) {
  TANDEM_ASSERT(opening.sampling != nullptr && opening.known != nullptr && opening.prompt_length >= 0);
  slot_state& state = any(opening.slot);
  state = slot_state{};
  state.open = true;
  state.slot_gen = opening.slot_gen;
  state.sampling = opening.sampling;
  state.noise_key = opening.noise_key;
  state.rule = opening.rule;
  state.prompt_length = opening.prompt_length;
  state.top_logprobs = opening.top_logprobs;
  state.prompt_logprobs = opening.prompt_logprobs;
  state.keeps_counts = looks_at_earlier_tokens(*opening.sampling);
  state.count_known(0, *opening.known);
  state.output_kept = bad_word_reach(*opening.sampling);
  state.note_output(std::span(*opening.known).subspan(static_cast<std::size_t>(opening.prompt_length)));
}

/// What lay behind the delta is forgotten: those blocks may be somebody else's by now.
void slot_table::set_table(const table_delta& delta) {
  slot_state& state = at(delta.slot);
  TANDEM_ASSERT(delta.first_index >= 0 && static_cast<std::size_t>(delta.first_index) <= state.table.size());
  for (const block_id block : delta.blocks) TANDEM_ASSERT(block >= 0 && block < num_blocks_);
  state.table.resize(static_cast<std::size_t>(delta.first_index));
  state.table.insert(state.table.end(), delta.blocks.begin(), delta.blocks.end());
}

}  // namespace tandem::gpu::host

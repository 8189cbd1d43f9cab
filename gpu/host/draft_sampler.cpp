#include "gpu/host/draft_sampler.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/assert.hpp"
#include "core/sampling/distribution.hpp"
#include "core/sampling/noise.hpp"

namespace tandem::gpu::host {

draft_sampler::draft_sampler(std::int32_t target_vocabulary, std::vector<token_id> target_ids, std::int32_t threads)
    : target_vocabulary_(target_vocabulary),
      target_ids_(std::move(target_ids)),
      rows_(static_cast<std::size_t>(threads)) {}

bool draft_sampler::draw(slot_state& slot, ticket::row& run, std::span<float> logits, std::int64_t position,
                         std::int32_t thread) {
  const sampling_params& params = *slot.sampling;
  const auto output_index = static_cast<std::int32_t>(position) - slot.prompt_length;
  logits = in_target_ids(logits, thread);
  if (penalties_active(params, output_index)) apply_penalties(logits, params, slot.counts, output_index);
  if (slot.rule == acceptance_rule::rejection && params.temperature > 0) {
    if (!draw_from_own(slot, run, logits, position)) return false;
  } else {
    run.tokens.push_back(draw_coupled(logits, params, slot.noise_key, position));
  }
  if (slot.keeps_counts) slot.counts.add_output(run.tokens.back());
  return true;
}

void draft_sampler::forget(slot_state& slot, const ticket::row& run) {
  if (!slot.keeps_counts) return;
  for (const token_id token : run.tokens) slot.counts.remove_output(token);
}

std::span<float> draft_sampler::in_target_ids(std::span<float> logits, std::int32_t thread) {
  const auto vocabulary = static_cast<std::size_t>(target_vocabulary_);
  if (target_ids_.empty()) return logits.first(std::min(logits.size(), vocabulary));
  TANDEM_ASSERT(logits.size() == target_ids_.size());
  std::vector<float>& row = rows_[static_cast<std::size_t>(thread)];
  row.assign(vocabulary, -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < logits.size(); ++i) row[static_cast<std::size_t>(target_ids_[i])] = logits[i];
  return row;
}

/// For the rejection rule: a draw with the source's own noise, and the distribution it was drawn from.
bool draft_sampler::draw_from_own(const slot_state& slot, ticket::row& run, std::span<float> logits,
                                  std::int64_t position) const {
  const std::vector<candidate> candidates = filtered_distribution(logits, *slot.sampling);
  if (candidates.empty()) return false;
  std::vector<float> q(static_cast<std::size_t>(target_vocabulary_), 0.0F);
  for (const candidate& each : candidates) q[static_cast<std::size_t>(each.id)] = each.probability;
  double left = uniform(slot.noise_key, position, 0, noise_purpose::draft);
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].probability > 0) chosen = i;
    left -= static_cast<double>(candidates[i].probability);
    if (left < 0) break;
  }
  run.tokens.push_back(candidates[chosen].id);
  run.q.push_back(std::move(q));
  return true;
}

}  // namespace tandem::gpu::host

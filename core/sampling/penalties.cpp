#include <algorithm>
#include <limits>

#include "core/sampling/distribution.hpp"

namespace tandem {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

bool inside(std::span<const float> logits, token_id id) {
  return id >= 0 && static_cast<std::size_t>(id) < logits.size();
}

void ban_nan(std::span<float> logits) {
  for (float& logit : logits) logit = logit >= kBanned ? logit : kBanned;
}

void keep_allowed(std::span<float> logits, const std::vector<token_id>& allowed) {
  if (allowed.empty()) return;
  std::size_t next = 0;
  for (const token_id id : allowed) {
    if (!inside(logits, id)) continue;
    for (; next < static_cast<std::size_t>(id); ++next) logits[next] = kBanned;
    next = static_cast<std::size_t>(id) + 1;
  }
  for (; next < logits.size(); ++next) logits[next] = kBanned;
}

void hold_back(std::span<float> logits, const sampling_params& params, std::int32_t output_index) {
  if (output_index >= params.min_tokens) return;
  for (const token_id id : params.held_until_min_tokens) {
    if (inside(logits, id)) logits[static_cast<std::size_t>(id)] = kBanned;
  }
}

// The formulas of vLLM (vllm/model_executor/layers/utils.py, apply_penalties): repetition divides positive logits and
// multiplies negative ones, over prompt and output; frequency and presence subtract, over the output only.
void penalize_seen(std::span<float> logits, const sampling_params& params, const token_counts& counts) {
  for (const auto& [id, count] : counts.all()) {
    if (!inside(logits, id)) continue;
    float& logit = logits[static_cast<std::size_t>(id)];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (count.in_output == 0) continue;
    logit -= params.frequency_penalty * static_cast<float>(count.in_output);
    logit -= params.presence_penalty;
  }
}

bool penalizes(const sampling_params& params) {
  return params.repetition_penalty != 1.0F || params.frequency_penalty != 0.0F || params.presence_penalty != 0.0F;
}

}  // namespace

bool penalties_active(const sampling_params& params, std::int32_t output_index) {
  const bool holds_back = output_index < params.min_tokens && !params.held_until_min_tokens.empty();
  return penalizes(params) || holds_back || !params.logit_bias.empty() || !params.allowed_token_ids.empty();
}

void apply_penalties(std::span<float> logits, const sampling_params& params, const token_counts& counts,
                     std::int32_t output_index) {
  ban_nan(logits);
  for (const auto& [id, bias] : params.logit_bias) {
    if (inside(logits, id)) logits[static_cast<std::size_t>(id)] += bias;
  }
  if (penalizes(params)) penalize_seen(logits, params, counts);
  keep_allowed(logits, params.allowed_token_ids);
  hold_back(logits, params, output_index);
}

}  // namespace tandem

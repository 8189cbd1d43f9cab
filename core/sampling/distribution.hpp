#pragma once
/// From a row of raw logits to the distribution a token is drawn from, and the draw. Pure functions; the semantics
/// every device must reproduce. All arithmetic in fp32 or double with a fixed order, ties by ascending token id.
///
/// Order: penalties and bias and bans → temperature → min-p → top-k → top-p.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/sampling/token_counts.hpp"

namespace tandem {

/// Applies repetition, frequency and presence penalties (vLLM's formulas), logit_bias, allowed_token_ids and the
/// min_tokens ban to `logits` in place. The bias comes first (it is added to the raw logits), bans come last.
/// `output_index`: 0 for the first generated token. NaN becomes -inf.
void apply_penalties(std::span<float> logits, const sampling_params& params, const token_counts& counts,
                     std::int32_t output_index);
/// Whether apply_penalties would change anything for these parameters at this index.
bool penalties_active(const sampling_params& params, std::int32_t output_index);

/// What is left after the filters: candidates by descending probability, ties by ascending id; probabilities sum to 1.
/// Without top-k, top-p and min-p all tokens with probability > 0 are candidates, in id order instead (no sort).
struct candidate {
  token_id id = kNoToken;
  float logit = 0;  ///< after penalties and temperature
  float probability = 0;
};
std::vector<candidate> filtered_distribution(std::span<const float> penalized_logits, const sampling_params& params);

/// Whether top-k, top-p or min-p may remove anything.
bool has_filters(const sampling_params& params, std::size_t vocabulary);

/// The probability that filtered_distribution() without filters gives `id`, to the bit, without making its list; 0 for
/// ids that are no candidates.
float unfiltered_probability(std::span<const float> penalized_logits, const sampling_params& params, token_id id);

/// Greedy: the largest logit, ties to the smallest id.
token_id greedy_token(std::span<const float> penalized_logits);

/// Coupled draw: argmax over the filtered candidates of log p + gumbel(key, position, id). Temperature 0: greedy_token.
/// Without filters it needs no normalisation and no copy: argmax of logit / temperature + gumbel.
token_id draw_coupled(std::span<const float> penalized_logits, const sampling_params& params, std::uint64_t key,
                      std::int64_t position);

/// Log-softmax of the raw logits for `token` and the `top` most probable.
token_logprobs raw_logprobs(std::span<const float> raw_logits, token_id token, std::int32_t top);

}  // namespace tandem

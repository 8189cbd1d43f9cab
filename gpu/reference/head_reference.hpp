#pragma once
/// Draft heads in plain double precision, after the published definitions: the oracle of the host device's.

#include <span>
#include <vector>

#include "core/ids.hpp"
#include "model/draft_heads.hpp"
#include "model/model.hpp"

namespace tandem::gpu::reference {

/// Logits over the draft vocabulary for each of `drafts`, behind `tokens` (at least two) and the drafts before it.
std::vector<std::vector<double>> head_reference(const model::head_description& head, const model::description& target,
                                                std::span<const token_id> tokens, std::span<const token_id> drafts);

}  // namespace tandem::gpu::reference

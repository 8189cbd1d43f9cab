#pragma once
/// A whole model in plain double precision, without cache, batch or packing: the oracle of the host device.

#include <span>
#include <vector>

#include "core/ids.hpp"
#include "model/model.hpp"

namespace tandem::gpu::reference {

/// Hidden states that enter each layer and, last, those that leave the last one: [layer][position][hidden]. No final
/// norm.
std::vector<std::vector<std::vector<double>>> hidden_reference(const model::description& model,
                                                               std::span<const token_id> tokens);

/// Logits after each of `tokens`: [position][vocabulary]. Cost grows with the square of the length; for tiny models.
std::vector<std::vector<double>> forward_reference(const model::description& model, std::span<const token_id> tokens);

}  // namespace tandem::gpu::reference

#pragma once
/// A whole model in plain double precision, without cache, batch or packing: the oracle of the host device.

#include <span>
#include <vector>

#include "core/ids.hpp"
#include "model/model.hpp"

namespace tandem::gpu::reference {

struct hidden_states {
  /// [layer][position][hidden]: what enters each layer, and last what enters the final norm.
  std::vector<std::vector<std::vector<double>>> entering;
  std::vector<std::vector<double>> normalized;  ///< [position][hidden], after the final norm
};
/// Cost as below.
hidden_states hidden_reference(const model::description& model, std::span<const token_id> tokens);

/// Logits after each of `tokens`: [position][vocabulary]. Cost grows with the square of the length; for tiny models.
std::vector<std::vector<double>> forward_reference(const model::description& model, std::span<const token_id> tokens);

}  // namespace tandem::gpu::reference

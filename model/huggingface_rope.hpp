#pragma once
/// RoPE settings of config.json, in the old keys (rope_theta, rope_scaling with "type" or "rope_type") and the new one
/// (rope_parameters).

#include "model/config_fields.hpp"
#include "model/hyperparameters.hpp"

namespace tandem::model {

/// Fills numbers.rope. Failures stick in `fields`: an unknown scaling type is refused, never ignored.
void read_huggingface_rope(config_fields& fields, hyperparameters& numbers);

}  // namespace tandem::model

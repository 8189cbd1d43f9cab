#pragma once
/// From numbers and tensors to the description a device executes.

#include <vector>

#include "core/result.hpp"
#include "model/architecture.hpp"
#include "model/hyperparameters.hpp"
#include "model/model.hpp"

namespace tandem::model {

/// Finds every tensor the architecture needs, checks its shape and that all numbers in it are finite, and refuses
/// tensors nobody would use. Pointers of the result point into `tensors`. Errors: corrupt, unsupported.
result<description> describe_model(const hyperparameters& numbers, const architecture& shape,
                                   const tensor_naming& naming, const std::vector<tensor>& tensors);

}  // namespace tandem::model

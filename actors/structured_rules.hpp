#pragma once
/// Which requests may say what their output must be. Pure; used by intake before anything is compiled.

#include "actors/request_rules.hpp"

namespace tandem {

/// Sizes, and what contradicts a grammar. Error: invalid_argument or unsupported, naming the field.
result<void> check_structured(const generation_request& request, const request_bounds& bounds);

}  // namespace tandem

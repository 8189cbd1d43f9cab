#pragma once
/// JSON text → value. Everything in it is untrusted.

#include <string_view>

#include "text/jinja/value.hpp"

namespace tandem::text::jinja {

/// `what` names the text in the error. Throws template_failure: invalid_argument, too_large.
value value_from_json(std::string_view json, std::string_view what, budget& spent);

}  // namespace tandem::text::jinja

#pragma once
/// What a JSON schema must not have, before XGrammar sees it: it passes over in silence what it cannot enforce.

#include <string_view>

#include "core/result.hpp"

namespace tandem {

/// Untrusted text. Errors: not JSON, no object, nested too deeply; with `strict` also keywords that would not be
/// enforced, with their place. The message is a reason without a full stop.
result<void> check_schema(std::string_view text, bool strict);

}  // namespace tandem

#pragma once
/// --speculative-config: one JSON object, keys as in docs/api.md.

#include <string>
#include <string_view>

#include "config/options.hpp"
#include "core/result.hpp"

namespace tandem::config {

/// Overwrites the fields of `target` that the object names. Errors: invalid_argument or unsupported naming the key.
result<void> apply_speculative_config(std::string_view json, speculation_options& target);

/// "none", "auto" and the names of core/speculation/method_names.hpp → method (absent: auto). Methods of later versions
/// are refused by name.
result<std::optional<draft_method>> parse_method(const std::string& name);

}  // namespace tandem::config

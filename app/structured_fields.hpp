#pragma once
/// What a line of a --prompts file says its answer must be: response_format, structured_outputs, guided_*.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/request.hpp"
#include "core/result.hpp"

namespace tandem::app {

/// At most one of the fields may ask for something. Errors: invalid_argument naming the field.
result<std::optional<structured_spec>> read_structured(const nlohmann::ordered_json& fields);
/// Whether read_structured() reads the field.
bool is_structured_field(const std::string& name);

}  // namespace tandem::app

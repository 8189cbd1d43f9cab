#pragma once
/// What a client says its output must be: response_format, structured_outputs, guided_*.

#include <optional>

#include "core/request.hpp"
#include "net/field_reader.hpp"

namespace tandem::net {

/// At most one of the fields may ask for something; mistakes stay in `fields`. What the schema, expression or grammar
/// says is not looked at.
std::optional<structured_spec> read_structured(field_reader& fields);
/// `text.format` of the Responses API, beside what read_structured() found.
void read_text_format(field_reader& fields, std::optional<structured_spec>& kept);

}  // namespace tandem::net

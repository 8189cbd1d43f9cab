#pragma once
/// The fields every way of asking shares: sampling, stopping, speculation, deadline.

#include <string_view>

#include "net/field_reader.hpp"
#include "net/openai_requests.hpp"

namespace tandem::net {

/// Fills everything of `request` except prompt and logprobs; mistakes stay in `fields`.
void read_generation_fields(field_reader& fields, std::string_view timeout_header, const request_facts& facts,
                            generation_request& request);
/// Checks `model` against the served names and gives the one to answer with. Absent: the first.
std::string read_model(field_reader& fields, const request_facts& facts);

}  // namespace tandem::net

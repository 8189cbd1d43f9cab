#pragma once
/// tools, tool_choice, parallel_tool_calls of a chat → what the template is told and what the answer may contain.

#include <string>

#include "net/field_reader.hpp"
#include "net/openai_requests.hpp"

namespace tandem::net {

struct tool_request {
  std::string json;      ///< `tools` for the template; empty: none
  tool_calling calling;  ///< of the answer
};

/// Mistakes stay in `fields`, each with the place in the list.
tool_request read_tool_fields(field_reader& fields, const request_facts& facts);

}  // namespace tandem::net

#pragma once
/// tools, tool_choice, parallel_tool_calls of a chat → what the template is told and what the answer may contain.

#include <optional>
#include <string>

#include "net/field_reader.hpp"
#include "net/openai_requests.hpp"

namespace tandem::net {

struct tool_request {
  std::string json;      ///< `tools` for the template; empty: none
  tool_calling calling;  ///< of the answer
  std::optional<structured_spec>
      grammar;  ///< what the answer must be, so that the calls asked for come; absent: anything
};

/// Mistakes stay in `fields`, each with the place in the list.
tool_request read_tool_fields(field_reader& fields, const request_facts& facts);

/// Refuses where the request says otherwise what its answer must be.
void add_tool_grammar(field_reader& fields, std::optional<structured_spec> grammar, generation_request& request);

}  // namespace tandem::net

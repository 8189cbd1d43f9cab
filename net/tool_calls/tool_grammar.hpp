#pragma once
/// What an answer must be, so that its calls of tools are ones that were asked for.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {

/// A function that a request offers.
struct tool_function {
  std::string name;
  std::string schema_json;  ///< of its arguments; empty: any object
  bool strict = false;      ///< arguments follow the schema, or the request is refused
};

/// What the request says about calling.
struct tool_demand {
  bool call = false;  ///< the answer is calls and nothing else
  std::string only;   ///< the one function to call, once; empty: any
};

bool any_strict(const std::vector<tool_function>& functions);
/// Whether calls of this kind can be enforced in this format. In llama3_json calls have no tags, so that in free text
/// nothing tells where the schema begins to hold.
bool can_enforce(tool_call_format format, const tool_demand& demand);

/// Absent: nothing needs to be enforced. With a strict function all schemas are those of strict ones: what they cannot
/// enforce is refused when the grammar is made; other functions then take any object. Without one, what schemas say is
/// enforced as far as it can be. Requires can_enforce().
std::optional<structured_spec> tool_grammar(const std::vector<tool_function>& functions, const tool_calling& calling,
                                            const tool_demand& demand);

}  // namespace tandem::net

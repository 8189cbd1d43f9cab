#include "net/tool_calls/tool_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/edge_limits.hpp"
#include "net/tool_calls/tool_grammar.hpp"

namespace tandem::net {
namespace {

bool is_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= limits::kMaxToolNameBytes && std::all_of(name.begin(), name.end(), fits);
}

/// One entry of `tools`; `at` is its place, for messages.
class tool_entry {
 public:
  tool_entry(field_reader& fields, std::size_t index) : fields_(fields), at_(fmt::format("tools[{}]", index)) {}

  void read(json_value value, const tool_calling& calling) {
    const auto tool = as_object(value);
    if (!tool) return refuse("", "must be an object");
    const auto type = tool->find("type");
    if (!type || as_string(*type) != "function")
      return refuse(".type", "must be \"function\", the only kind of tool here");
    const auto member = tool->find("function");
    const auto function = member ? as_object(*member) : std::nullopt;
    if (!function) return refuse(".function", "is missing; it must be an object with a name");
    read_name(*function, calling);
    read_parameters(*function);
    read_rest(*function);
  }

  tool_function take() { return std::move(function_); }

 private:
  void refuse(std::string_view member, std::string_view what, error_code code = error_code::invalid_argument) {
    const std::string place = at_ + std::string(member);
    fields_.refuse(place, fmt::format("'{}' {}.", place, what), code);
  }

  void read_name(const json_object& function, const tool_calling& calling) {
    const auto member = function.find("name");
    const auto name = member ? as_string(*member) : std::nullopt;
    if (!name || !is_name(*name)) {
      return refuse(".function.name",
                    fmt::format("must be a string of 1 to {} letters, digits, '_' and '-'", limits::kMaxToolNameBytes));
    }
    if (std::find(calling.offered.begin(), calling.offered.end(), *name) != calling.offered.end())
      return refuse(".function.name", "names a function that another tool has; names must differ");
    function_.name = std::string(*name);
  }

  void read_parameters(const json_object& function) {
    const auto member = function.find("parameters");
    if (!member) return;
    const auto schema = as_object(*member);
    if (!schema) return refuse(".function.parameters", "must be a JSON schema, an object");
    const auto type = schema->find("type");
    if (type && as_string(*type) != "object")
      return refuse(".function.parameters.type", "must be \"object\": arguments are an object");
    function_.schema_json = json_text(*member);
  }

  void read_rest(const json_object& function) {
    const auto description = function.find("description");
    if (description && !description->is_string()) refuse(".function.description", "must be a string");
    const auto strict = function.find("strict");
    if (!strict) return;
    if (strict->get(function_.strict)) refuse(".function.strict", "must be true or false");
  }

  field_reader& fields_;
  std::string at_;
  tool_function function_;
};

std::vector<tool_function> read_list(field_reader& fields, tool_request& out) {
  std::vector<tool_function> functions;
  const auto tools = fields.array("tools");
  if (!tools || tools->empty()) return functions;
  if (tools->size() > limits::kMaxTools) {
    fields.refuse("tools", fmt::format("'tools' takes at most {} tools.", limits::kMaxTools));
    return functions;
  }
  for (std::size_t i = 0; i < tools->size(); ++i) {
    tool_entry entry(fields, i);
    entry.read((*tools)[i], out.calling);
    functions.push_back(entry.take());
    out.calling.offered.push_back(functions.back().name);
  }
  out.json = json_text(*fields.any("tools"));
  return functions;
}

// {"type": "function", "function": {"name": …}}
std::string named_function(const json_object& choice) {
  const auto member = choice.find("function");
  const auto function = member ? as_object(*member) : std::nullopt;
  const auto name = function ? function->find("name") : std::nullopt;
  return std::string(name ? as_string(*name).value_or("") : "");
}

// Absent: calls stay text.
std::optional<tool_demand> read_choice(field_reader& fields, const tool_calling& calling) {
  const auto choice = fields.any("tool_choice");
  const auto word = choice ? as_string(*choice) : std::optional<std::string_view>("auto");
  if (word == "none") return std::nullopt;
  tool_demand demand;
  if (word == "auto") return demand;
  demand.call = true;
  const auto object = choice ? as_object(*choice) : std::nullopt;
  if (word != "required" && !object) {
    fields.refuse("tool_choice", "'tool_choice' must be \"none\", \"auto\", \"required\" or name a function.");
  } else if (calling.offered.empty()) {
    fields.refuse("tool_choice", "'tool_choice' asks for a call, which needs 'tools'.");
  } else if (object) {
    demand.only = named_function(*object);
    if (std::find(calling.offered.begin(), calling.offered.end(), demand.only) == calling.offered.end())
      fields.refuse("tool_choice", "'tool_choice.function.name' must be the name of one of 'tools'.");
  }
  return demand;
}

void enforce(field_reader& fields, const std::vector<tool_function>& functions, const tool_demand& demand,
             tool_request& out) {
  const bool strict = any_strict(functions);
  if (fields.problem() || (!strict && !demand.call)) return;
  const std::string_view field = demand.call ? "tool_choice" : "tools";
  if (out.calling.format == tool_call_format::none) {
    return fields.refuse(field,
                         "This model's chat template tells no form of calls, so none can be enforced; start the server "
                         "with --tool-call-parser, or leave out 'strict' and 'tool_choice'.",
                         error_code::unsupported);
  }
  if (!can_enforce(out.calling.format, demand)) {
    return fields.refuse(
        field, "'strict' needs a 'tool_choice' that asks for a call with this model, whose calls have no tags.",
        error_code::unsupported);
  }
  out.calling.by_name = !demand.only.empty();
  out.calling.tags_only = strict && !demand.call;
  out.grammar = tool_grammar(functions, out.calling, demand);
}

}  // namespace

tool_request read_tool_fields(field_reader& fields, const request_facts& facts) {
  tool_request out;
  for (const std::string_view older : {"functions", "function_call"}) {
    if (fields.any(older))
      fields.refuse(older, fmt::format("'{}' is not offered; send 'tools' and 'tool_choice'.", older),
                    error_code::unsupported);
  }
  const std::vector<tool_function> functions = read_list(fields, out);
  out.calling.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  const auto demand = read_choice(fields, out.calling);
  if (!demand) return out;
  out.calling.format = facts.tool_calls;
  enforce(fields, functions, *demand, out);
  return out;
}

void add_tool_grammar(field_reader& fields, std::optional<structured_spec> grammar, generation_request& request) {
  if (!grammar) return;
  if (request.structured) {
    const std::string& other = request.structured->field;
    return fields.refuse(other,
                         fmt::format("'{}' cannot go with calls of tools that are enforced; leave out one.", other));
  }
  request.structured = std::move(grammar);
}

}  // namespace tandem::net

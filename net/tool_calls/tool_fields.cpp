#include "net/tool_calls/tool_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/edge_limits.hpp"

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

  void read(json_value value, tool_calling& calling) {
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

 private:
  void refuse(std::string_view member, std::string_view what, error_code code = error_code::invalid_argument) {
    const std::string place = at_ + std::string(member);
    fields_.refuse(place, fmt::format("'{}' {}.", place, what), code);
  }

  void read_name(const json_object& function, tool_calling& calling) {
    const auto member = function.find("name");
    const auto name = member ? as_string(*member) : std::nullopt;
    if (!name || !is_name(*name)) {
      return refuse(".function.name",
                    fmt::format("must be a string of 1 to {} letters, digits, '_' and '-'", limits::kMaxToolNameBytes));
    }
    if (std::find(calling.offered.begin(), calling.offered.end(), *name) != calling.offered.end())
      return refuse(".function.name", "names a function that another tool has; names must differ");
    calling.offered.emplace_back(*name);
  }

  void read_parameters(const json_object& function) {
    const auto member = function.find("parameters");
    if (!member) return;
    const auto schema = as_object(*member);
    if (!schema) return refuse(".function.parameters", "must be a JSON schema, an object");
    const auto type = schema->find("type");
    if (type && as_string(*type) != "object")
      refuse(".function.parameters.type", "must be \"object\": arguments are an object");
  }

  void read_rest(const json_object& function) {
    const auto description = function.find("description");
    if (description && !description->is_string()) refuse(".function.description", "must be a string");
    const auto strict = function.find("strict");
    if (!strict) return;
    bool wanted = false;
    if (strict->get(wanted)) return refuse(".function.strict", "must be true or false");
    if (wanted) refuse(".function.strict", "is not supported yet; leave it out", error_code::unsupported);
  }

  field_reader& fields_;
  std::string at_;
};

void read_list(field_reader& fields, tool_request& out) {
  const auto tools = fields.array("tools");
  if (!tools || tools->empty()) return;
  if (tools->size() > limits::kMaxTools)
    return fields.refuse("tools", fmt::format("'tools' takes at most {} tools.", limits::kMaxTools));
  for (std::size_t i = 0; i < tools->size(); ++i) tool_entry(fields, i).read((*tools)[i], out.calling);
  out.json = json_text(*fields.any("tools"));
}

// Whether calls may be read from the answer.
bool read_choice(field_reader& fields, const tool_calling& calling) {
  const auto choice = fields.any("tool_choice");
  if (!choice) return true;
  const auto word = as_string(*choice);
  if (word == "none") return false;
  if (word == "auto") return true;
  if (word != "required" && !choice->is_object()) {
    fields.refuse("tool_choice", "'tool_choice' must be \"none\", \"auto\", \"required\" or name a function.");
  } else if (calling.offered.empty()) {
    fields.refuse("tool_choice", "'tool_choice' asks for a call, which needs 'tools'.");
  } else {
    fields.refuse("tool_choice", "'tool_choice' other than \"none\" and \"auto\" is not supported yet.",
                  error_code::unsupported);
  }
  return false;
}

}  // namespace

tool_request read_tool_fields(field_reader& fields, const request_facts& facts) {
  tool_request out;
  for (const std::string_view older : {"functions", "function_call"}) {
    if (fields.any(older))
      fields.refuse(older, fmt::format("'{}' is not offered; send 'tools' and 'tool_choice'.", older),
                    error_code::unsupported);
  }
  read_list(fields, out);
  out.calling.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  if (read_choice(fields, out.calling)) out.calling.format = facts.tool_calls;
  return out;
}

}  // namespace tandem::net

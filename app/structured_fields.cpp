#include "app/structured_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tandem::app {
namespace {

using json = nlohmann::ordered_json;  // a schema's properties come in the order that was given
using form = structured_spec::form;

tl::unexpected<error> wrong(const std::string& field, const std::string& wanted) {
  return fail(error_code::invalid_argument, fmt::format("the field \"{}\" must be {}.", field, wanted), field);
}

bool present(const json& object, const char* name) {
  return object.contains(name) && !object[name].is_null();
}

result<structured_spec> spec_of(form kind, const std::string& field, const json& value) {
  structured_spec spec;
  spec.kind = kind;
  spec.field = field;
  if (kind == form::json_object) {
    if (value != true) return wrong(field, "true");
    return spec;
  }
  if (kind == form::choice) {
    if (!value.is_array()) return wrong(field, "a list of strings");
    for (const json& entry : value) {
      if (!entry.is_string()) return wrong(field, "a list of strings");
      spec.choices.push_back(entry.get<std::string>());
    }
    return spec;
  }
  if (kind == form::json_schema && value.is_object()) {
    spec.text = value.dump();
    return spec;
  }
  if (!value.is_string()) return wrong(field, kind == form::json_schema ? "a JSON schema" : "a string");
  spec.text = value.get<std::string>();
  return spec;
}

result<structured_spec> format_schema(const json& format) {
  constexpr const char* kField = "response_format.json_schema.schema";
  if (!present(format, "json_schema") || !format["json_schema"].is_object() ||
      !present(format["json_schema"], "schema"))
    return wrong("response_format.json_schema", "an object with the schema in \"schema\"");
  const json& inner = format["json_schema"];
  auto spec = spec_of(form::json_schema, kField, inner["schema"]);
  if (!spec) return spec;
  spec->strict = false;
  if (!present(inner, "strict")) return spec;
  if (!inner["strict"].is_boolean()) return wrong("response_format.json_schema.strict", "true or false");
  spec->strict = inner["strict"].get<bool>();
  return spec;
}

/// Nothing for {"type": "text"}.
result<std::optional<structured_spec>> read_response_format(const json& format) {
  const json type = format.is_object() && format.contains("type") ? format["type"] : json();
  if (type == "text") return std::nullopt;
  if (type == "json_object") return spec_of(form::json_object, "response_format", true);
  if (type != "json_schema") return wrong("response_format", "an object of type text, json_object or json_schema");
  return format_schema(format);
}

struct named_form {
  const char* name;
  form kind;
};
constexpr std::array kStructuredOutputs = {
    named_form{"json", form::json_schema}, named_form{"json_object", form::json_object},
    named_form{"regex", form::regex}, named_form{"choice", form::choice}, named_form{"grammar", form::ebnf}};
constexpr std::array kGuided = {named_form{"guided_json", form::json_schema}, named_form{"guided_regex", form::regex},
                                named_form{"guided_choice", form::choice}, named_form{"guided_grammar", form::ebnf}};

}  // namespace

bool is_structured_field(const std::string& name) {
  if (name == "response_format" || name == "structured_outputs") return true;
  return std::any_of(kGuided.begin(), kGuided.end(), [&](const named_form& known) { return name == known.name; });
}

result<std::optional<structured_spec>> read_structured(const json& fields) {
  std::vector<result<std::optional<structured_spec>>> found;
  if (present(fields, "response_format")) found.push_back(read_response_format(fields["response_format"]));
  if (present(fields, "structured_outputs")) {
    const json& object = fields["structured_outputs"];
    const std::size_t before = found.size();
    for (const auto& [name, kind] : kStructuredOutputs)
      if (object.is_object() && present(object, name))
        found.push_back(spec_of(kind, fmt::format("structured_outputs.{}", name), object[name]));
    if (found.size() == before)
      return wrong("structured_outputs", "an object with one of json, json_object, regex, choice and grammar");
  }
  for (const auto& [name, kind] : kGuided)
    if (present(fields, name)) found.push_back(spec_of(kind, name, fields[name]));

  std::optional<structured_spec> kept;
  for (auto& each : found) {
    if (!each) return tl::unexpected(each.error());
    if (!*each) continue;
    if (kept)
      return fail(error_code::invalid_argument,
                  fmt::format("the fields \"{}\" and \"{}\" both say what the answer must be; give one of them.",
                              kept->field, (*each)->field),
                  (*each)->field);
    kept = std::move(*each);
  }
  return kept;
}

}  // namespace tandem::app

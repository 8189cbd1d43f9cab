#include "net/structured_fields.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "config/structured_limits.hpp"

namespace tandem::net {
namespace {

using form = structured_spec::form;

/// What one field asks for. `name` is its place in `fields`; `shown` is how errors call it.
struct asked_field {
  std::string_view name;
  std::string shown;
  form kind;
};

/// A schema is an object, or its text in a string.
std::optional<structured_spec> schema_of(field_reader& fields, const asked_field& asked, json_value value) {
  structured_spec spec;
  spec.kind = form::json_schema;
  spec.field = asked.shown;
  if (const auto text = as_string(value)) {
    spec.text = std::string(*text);
    return spec;
  }
  if (as_object(value)) {
    spec.text = json_text(value);
    return spec;
  }
  fields.refuse(asked.shown, fmt::format("'{}' must be a JSON schema: an object.", asked.shown));
  return std::nullopt;
}

std::optional<structured_spec> choice_of(field_reader& fields, const asked_field& asked, json_value value) {
  structured_spec spec;
  spec.kind = form::choice;
  spec.field = asked.shown;
  const auto list = as_array(value);
  if (!list) {
    fields.refuse(asked.shown, fmt::format("'{}' must be a list of strings.", asked.shown));
    return std::nullopt;
  }
  if (list->size() > limits::kMaxStructuredChoices) {
    fields.refuse(asked.shown, fmt::format("'{}' has {} strings; at most {} are taken.", asked.shown, list->size(),
                                           limits::kMaxStructuredChoices));
    return std::nullopt;
  }
  for (const json_value& entry : *list) {
    const auto text = as_string(entry);
    if (!text) {
      fields.refuse(asked.shown, fmt::format("'{}' must be a list of strings.", asked.shown));
      return std::nullopt;
    }
    spec.choices.emplace_back(*text);
  }
  return spec;
}

std::optional<structured_spec> text_of(field_reader& fields, const asked_field& asked, json_value value) {
  const auto text = as_string(value);
  if (!text) {
    fields.refuse(asked.shown, fmt::format("'{}' must be a string.", asked.shown));
    return std::nullopt;
  }
  structured_spec spec;
  spec.kind = asked.kind;
  spec.text = std::string(*text);
  spec.field = asked.shown;
  return spec;
}

std::optional<structured_spec> object_of(field_reader& fields, const asked_field& asked, json_value value) {
  bool wanted = false;
  if (value.get(wanted)) fields.refuse(asked.shown, fmt::format("'{}' must be true or false.", asked.shown));
  if (!wanted) return std::nullopt;
  structured_spec spec;
  spec.field = asked.shown;
  return spec;
}

std::optional<structured_spec> spec_of(field_reader& fields, const asked_field& asked, json_value value) {
  switch (asked.kind) {
    case form::json_object:
      return object_of(fields, asked, value);
    case form::json_schema:
      return schema_of(fields, asked, value);
    case form::choice:
      return choice_of(fields, asked, value);
    default:
      return text_of(fields, asked, value);
  }
}

/// Keeps the only one; a second is a mistake.
void keep(field_reader& fields, std::optional<structured_spec>& kept, std::optional<structured_spec> found) {
  if (!found) return;
  if (kept)
    return fields.refuse(found->field, fmt::format("'{}' and '{}' both say what the output must be; send one of them.",
                                                   kept->field, found->field));
  kept = std::move(found);
}

/// Where a format stands: chat wraps the schema and what belongs to it once more, responses do not.
struct format_place {
  std::string shown;
  bool wrapped = false;
};

std::optional<structured_spec> read_format_schema(field_reader& fields, const json_object& format,
                                                  const format_place& place) {
  const auto wrapped = place.wrapped ? format.find("json_schema") : std::nullopt;
  const auto inner = wrapped ? as_object(*wrapped) : std::nullopt;
  const json_object* const around = place.wrapped ? (inner ? &*inner : nullptr) : &format;
  const std::string shown = place.shown + (place.wrapped ? ".json_schema" : "");
  const auto schema = around != nullptr ? around->find("schema") : std::nullopt;
  if (!schema) {
    fields.refuse(place.shown, fmt::format("'{}' must be an object with the schema in 'schema'.", shown));
    return std::nullopt;
  }
  auto spec = schema_of(fields, {"schema", shown + ".schema", form::json_schema}, *schema);
  field_reader flags(*around);
  const bool strict = flags.boolean("strict").value_or(false);
  if (flags.problem()) fields.refuse(shown + ".strict", flags.problem()->message);
  if (spec) spec->strict = strict;
  return spec;
}

std::optional<structured_spec> read_format(field_reader& fields, const json_object& format, const format_place& place) {
  const auto named = format.find("type");
  const std::string_view type = named ? as_string(*named).value_or("") : "";
  if (type == "text") return std::nullopt;
  if (type == "json_schema") return read_format_schema(fields, format, place);
  if (type != "json_object") {
    fields.refuse(place.shown, fmt::format("'{}.type' must be 'text', 'json_object' or 'json_schema'.", place.shown));
    return std::nullopt;
  }
  structured_spec spec;
  spec.field = place.shown;
  return spec;
}

std::optional<structured_spec> read_response_format(field_reader& fields) {
  const auto format = fields.object("response_format");
  return format ? read_format(fields, *format, {"response_format", true}) : std::nullopt;
}

/// vLLM's object, of which one member is set.
std::optional<structured_spec> read_structured_outputs(field_reader& fields) {
  const auto object = fields.object("structured_outputs");
  if (!object) return std::nullopt;
  std::optional<structured_spec> kept;
  for (const auto& [name, kind] : {std::pair{std::string_view("json"), form::json_schema},
                                   {"json_object", form::json_object},
                                   {"regex", form::regex},
                                   {"choice", form::choice},
                                   {"grammar", form::ebnf}}) {
    const asked_field asked{name, fmt::format("structured_outputs.{}", name), kind};
    if (const auto value = object->find(name)) keep(fields, kept, spec_of(fields, asked, *value));
  }
  if (!kept)
    fields.refuse("structured_outputs",
                  "'structured_outputs' must have one of 'json', 'json_object', 'regex', 'choice' and 'grammar'.");
  return kept;
}

}  // namespace

std::optional<structured_spec> read_structured(field_reader& fields) {
  auto kept = read_response_format(fields);
  keep(fields, kept, read_structured_outputs(fields));
  const auto take = [&](std::string_view name, form kind, std::optional<json_value> value) {
    if (value) keep(fields, kept, spec_of(fields, {name, std::string(name), kind}, *value));
  };
  take("guided_json", form::json_schema, fields.any("guided_json"));
  take("guided_regex", form::regex, fields.any("guided_regex"));
  take("guided_choice", form::choice, fields.any("guided_choice"));
  take("guided_grammar", form::ebnf, fields.any("guided_grammar"));
  return kept;
}

void read_text_format(field_reader& fields, std::optional<structured_spec>& kept) {
  const auto text = fields.object("text");
  const auto value = text ? text->find("format") : std::nullopt;
  if (!value) return;
  const auto format = as_object(*value);
  if (!format) return fields.refuse("text.format", "'text.format' must be an object.");
  keep(fields, kept, read_format(fields, *format, {"text.format", false}));
}

}  // namespace tandem::net

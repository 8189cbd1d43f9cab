#include "grammar/schema_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "config/structured_limits.hpp"

namespace tandem {
namespace {

using nlohmann::json;
using names = std::initializer_list<const char*>;

// Never enforced, whatever stands beside them.
constexpr names kUnenforced = {
    "not",         "if",       "then",        "else",        "dependentRequired", "dependentSchemas", "dependencies",
    "uniqueItems", "contains", "minContains", "maxContains", "$dynamicRef",       "$recursiveRef"};
// The first of these decides alone; what else restricts a value beside it is passed over.
constexpr names kDeciding = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};
constexpr names kRestricting = {"type",
                                "properties",
                                "patternProperties",
                                "additionalProperties",
                                "required",
                                "propertyNames",
                                "minProperties",
                                "maxProperties",
                                "items",
                                "prefixItems",
                                "minItems",
                                "maxItems",
                                "minLength",
                                "maxLength",
                                "pattern",
                                "minimum",
                                "maximum",
                                "exclusiveMinimum",
                                "exclusiveMaximum",
                                "multipleOf",
                                "unevaluatedItems",
                                "unevaluatedProperties"};
// Without a type, one of these tells it.
constexpr names kTelling = {"type",  "properties",  "additionalProperties", "unevaluatedProperties",
                            "items", "prefixItems", "unevaluatedItems"};
constexpr names kSchemaMaps = {"properties", "patternProperties", "$defs", "definitions"};
constexpr names kSchemas = {"items", "additionalProperties", "propertyNames", "unevaluatedItems",
                            "unevaluatedProperties"};
constexpr names kSchemaLists = {"prefixItems", "anyOf", "oneOf", "allOf"};

tl::unexpected<error> reason(std::string text) {
  return fail(error_code::invalid_argument, std::move(text));
}

bool nested_too_deeply(const json& value, std::size_t left) {
  if (!value.is_structured()) return false;
  if (left == 0) return true;
  return std::any_of(value.begin(), value.end(), [&](const json& each) { return nested_too_deeply(each, left - 1); });
}

const char* first_present(const json& schema, names wanted) {
  const auto found =
      std::find_if(wanted.begin(), wanted.end(), [&](const char* name) { return schema.contains(name); });
  return found == wanted.end() ? nullptr : *found;
}

bool goes_with(std::string_view deciding, std::string_view other) {
  return other == "type" && (deciding == "const" || deciding == "enum");
}

result<void> check_combination(const json& schema, const std::string& place) {
  if (const char* deciding = first_present(schema, kDeciding)) {
    for (const names& group : {kDeciding, kRestricting})
      for (const char* other : group)
        if (schema.contains(other) && std::string_view(other) != deciding && !goes_with(deciding, other))
          return reason(fmt::format("{} has '{}' beside '{}', which cannot be enforced together; leave out one of them",
                                    place, other, deciding));
    return {};
  }
  const char* restricting = first_present(schema, kRestricting);
  if (restricting == nullptr || first_present(schema, kTelling) != nullptr) return {};
  return reason(fmt::format("{} has '{}' but no 'type', so it cannot be enforced; add the type", place, restricting));
}

result<void> check_enforced(const json& schema, const std::string& place);

result<void> check_parts(const json& schema, const std::string& place) {
  for (const char* name : kSchemaMaps) {
    if (!schema.contains(name) || !schema[name].is_object()) continue;
    for (const auto& [key, part] : schema[name].items())
      if (auto ok = check_enforced(part, fmt::format("{}.{}.{}", place, name, key)); !ok) return ok;
  }
  for (const char* name : kSchemas) {
    if (!schema.contains(name)) continue;
    if (auto ok = check_enforced(schema[name], fmt::format("{}.{}", place, name)); !ok) return ok;
  }
  for (const char* name : kSchemaLists) {
    if (!schema.contains(name) || !schema[name].is_array()) continue;
    std::size_t index = 0;
    for (const json& part : schema[name])
      if (auto ok = check_enforced(part, fmt::format("{}.{}[{}]", place, name, index++)); !ok) return ok;
  }
  return {};
}

/// The nesting is bounded already.
result<void> check_enforced(const json& schema, const std::string& place) {
  if (!schema.is_object()) return {};  // true, false, or a mistake that XGrammar tells
  if (const char* name = first_present(schema, kUnenforced); name != nullptr && schema[name] != false)
    return reason(fmt::format("{} has '{}', which cannot be enforced; leave it out", place, name));
  if (auto ok = check_combination(schema, place); !ok) return ok;
  return check_parts(schema, place);
}

}  // namespace

result<void> check_schema(std::string_view text, bool strict) {
  const auto too_deep = [](int depth, json::parse_event_t, json&) {
    return depth <= static_cast<int>(limits::kMaxSchemaDepth) + 1;
  };
  const json schema = json::parse(text, too_deep, false);
  if (schema.is_discarded()) return reason("it is not JSON");
  if (!schema.is_object()) return reason("a JSON schema must be an object");
  if (nested_too_deeply(schema, limits::kMaxSchemaDepth))
    return reason(fmt::format("it is nested more than {} deep", limits::kMaxSchemaDepth));
  if (!strict) return {};
  return check_enforced(schema, "the schema");
}

}  // namespace tandem

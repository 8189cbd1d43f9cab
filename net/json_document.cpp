#include "net/json_document.hpp"

#include <fmt/format.h>

#include <cstring>

namespace tandem::net {
namespace {

constexpr std::string_view kBom = "\xEF\xBB\xBF";

// Four hex digits at `at`, or -1.
int code_unit(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

bool is_high(int unit) {
  return unit >= 0xD800 && unit <= 0xDBFF;
}
bool is_low(int unit) {
  return unit >= 0xDC00 && unit <= 0xDFFF;
}

// The parser lets some lone surrogates through as ill-formed UTF-8. Backslashes occur only inside strings.
bool has_lone_surrogate(std::string_view text) {
  std::size_t at = 0;
  while ((at = text.find('\\', at)) != std::string_view::npos) {
    const bool is_unit = at + 1 < text.size() && text[at + 1] == 'u';
    const int unit = is_unit ? code_unit(text, at + 2) : -1;
    at += 2;
    if (is_low(unit)) return true;
    if (!is_high(unit)) continue;
    at += 4;
    if (text.substr(at, 2) != "\\u" || !is_low(code_unit(text, at + 2))) return true;
    at += 6;
  }
  return false;
}

std::string explain(simdjson::error_code reason, std::size_t max_depth) {
  switch (reason) {
    case simdjson::EMPTY:
      return "The body is empty; send a JSON object.";
    case simdjson::UTF8_ERROR:
      return "The body is not valid UTF-8; encode it as UTF-8.";
    case simdjson::DEPTH_ERROR:
      return fmt::format("The JSON is nested deeper than {} levels; flatten it.", max_depth);
    case simdjson::NUMBER_ERROR:
      return "The JSON holds a malformed number or one beyond 64 bits; correct it.";
    default:
      return fmt::format("The body is not valid JSON ({}); correct its syntax.", simdjson::error_message(reason));
  }
}

}  // namespace

result<json_document> json_document::parse(std::string_view text, std::size_t max_depth) {
  if (text.starts_with(kBom)) {
    return fail(error_code::invalid_argument, "The body starts with a byte order mark; send UTF-8 without one.");
  }
  json_document document;
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::error_code reason = simdjson::EMPTY;
  if (!text.empty()) reason = document.parser_->allocate(text.size(), max_depth);
  if (!reason) reason = document.parser_->parse(text.data(), text.size()).get(document.root_);
  if (reason) return fail(error_code::invalid_argument, explain(reason, max_depth));
  if (has_lone_surrogate(text)) {
    return fail(error_code::invalid_argument,
                "The JSON has half of a surrogate pair in a \\u escape; send both halves or none.");
  }
  return document;
}

json_object::json_object(simdjson::dom::object object) {
  for (const auto field : object) members_.emplace_back(field.key, field.value);
}

std::optional<json_value> json_object::find(std::string_view name) const {
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    if (member->first != name) continue;
    if (member->second.is_null()) return std::nullopt;
    return member->second;
  }
  return std::nullopt;
}

std::string json_text(json_value value) {
  return simdjson::minify(value);
}

std::optional<json_object> as_object(json_value value) {
  simdjson::dom::object object;
  if (value.get(object)) return std::nullopt;
  return json_object(object);
}

std::optional<std::vector<json_value>> as_array(json_value value) {
  simdjson::dom::array array;
  if (value.get(array)) return std::nullopt;
  return std::vector<json_value>(array.begin(), array.end());
}

std::optional<std::string_view> as_string(json_value value) {
  std::string_view text;
  if (value.get(text)) return std::nullopt;
  return text;
}

}  // namespace tandem::net

#pragma once
/// JSON in: checked as a whole before anything is read from it. Wraps simdjson.

#include <simdjson.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace tandem::net {

using json_value = simdjson::dom::element;  ///< valid while its json_document lives

/// A parsed text. Movable; values stay valid.
class json_document {
 public:
  /// Refuses (invalid_argument): anything but one JSON value, ill-formed UTF-8, a byte order mark, lone surrogate
  /// escapes, numbers beyond 64 bits, nesting deeper than `max_depth`. Memory is linear in the text, time too.
  static result<json_document> parse(std::string_view text, std::size_t max_depth);
  json_value root() const { return root_; }

 private:
  // On the heap: values point into the parser.
  std::unique_ptr<simdjson::dom::parser> parser_;
  json_value root_;
};

/// An object's members in order. Of equal keys the last one wins, as in Python and JavaScript.
class json_object {
 public:
  explicit json_object(simdjson::dom::object object);
  /// Absent and null are the same.
  std::optional<json_value> find(std::string_view name) const;
  const std::vector<std::pair<std::string_view, json_value>>& members() const { return members_; }

 private:
  std::vector<std::pair<std::string_view, json_value>> members_;
};

/// The value as JSON text without spaces.
std::string json_text(json_value value);
/// Of a value that is an object or array already.
std::optional<json_object> as_object(json_value value);
std::optional<std::vector<json_value>> as_array(json_value value);
std::optional<std::string_view> as_string(json_value value);

}  // namespace tandem::net

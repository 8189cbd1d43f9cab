#pragma once
/// Untrusted JSON through simdjson's tree, bounded in size and depth, without exceptions.

#include <simdjson.h>

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace tandem::text {

/// A parsed file. The elements refer into it. Not copyable, not thread-safe.
class json_document {
 public:
  /// Errors: corrupt, too_large; both name `file`.
  result<simdjson::dom::element> parse(std::string_view text, std::string_view file);

 private:
  simdjson::dom::parser parser_;
};

/// Member of an object; a null element's worth of "absent" for a missing one, JSON null, or no object at all.
class json_field {
 public:
  json_field() = default;
  json_field(simdjson::dom::element element) : element_(element), present_(!element.is_null()) {}  // NOLINT: a view
  explicit operator bool() const { return present_; }
  json_field operator[](std::string_view key) const;
  bool is_string() const { return present_ && element_.is_string(); }
  bool is_object() const { return present_ && element_.is_object(); }
  bool is_array() const { return present_ && element_.is_array(); }
  std::string_view text_or(std::string_view fallback) const;
  bool flag_or(bool fallback) const;
  std::int64_t integer_or(std::int64_t fallback) const;
  /// Only for arrays and objects; empty for everything else.
  simdjson::dom::array items() const;
  simdjson::dom::object members() const;

 private:
  simdjson::dom::element element_;
  bool present_ = false;
};

}  // namespace tandem::text

#pragma once
/// JSON out: appends to a string, never throws on what a model or a user said.

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::net {

/// Appends `text` as a JSON string. Ill-formed UTF-8 becomes U+FFFD; U+2028 and U+2029 are escaped, so that no reader
/// takes them for a line's end.
void append_json_string(std::string& out, std::string_view text);
/// Whether `text` is well-formed UTF-8.
bool is_utf8(std::string_view text);

/// Writes one JSON value with its commas. Members in the order of calls.
class json_writer {
 public:
  json_writer& begin_object() { return open('{'); }
  json_writer& end_object() { return close('}'); }
  json_writer& begin_array() { return open('['); }
  json_writer& end_array() { return close(']'); }
  json_writer& key(std::string_view name);
  json_writer& string(std::string_view value);
  json_writer& integer(std::int64_t value);
  json_writer& number(double value);  ///< not finite: null
  json_writer& boolean(bool value);
  json_writer& null();
  json_writer& raw(std::string_view json);  ///< a complete JSON value
  /// The text so far; leaves the writer empty.
  std::string take();

 private:
  json_writer& open(char bracket);
  json_writer& close(char bracket);
  void separate();
  std::string out_;
  bool needs_comma_ = false;
};

}  // namespace tandem::net

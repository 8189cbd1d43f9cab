#include "net/json_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <utility>

namespace tandem::net {
namespace {

struct utf8_step {
  std::size_t bytes = 1;
  bool valid = false;
};

bool continues(std::string_view text, std::size_t at, unsigned low, unsigned high) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= low && byte <= high;
}

// Well-formed sequences by table 3-7 of the Unicode standard; an ill-formed one is its maximal subpart.
utf8_step next_character(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (!continues(text, at + 1, low, high)) return {1, false};
  for (std::size_t i = 2; i < length; ++i) {
    if (!continues(text, at + i, 0x80, 0xBF)) return {i, false};
  }
  return {length, true};
}

void append_ascii(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  } else {
    out += c;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const utf8_step step = next_character(text, at);
    const std::string_view bytes = text.substr(at, step.bytes);
    if (!step.valid) {
      out += "\xEF\xBF\xBD";
    } else if (step.bytes == 1) {
      append_ascii(out, text[at]);
    } else if (bytes == "\xE2\x80\xA8" || bytes == "\xE2\x80\xA9") {
      out += bytes.back() == '\xA8' ? "\\u2028" : "\\u2029";
    } else {
      out += bytes;
    }
    at += step.bytes;
  }
  out += '"';
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const utf8_step step = next_character(text, at);
    if (!step.valid) return false;
    at += step.bytes;
  }
  return true;
}

void json_writer::separate() {
  if (needs_comma_) out_ += ',';
  needs_comma_ = true;
}

json_writer& json_writer::open(char bracket) {
  separate();
  out_ += bracket;
  needs_comma_ = false;
  return *this;
}

json_writer& json_writer::close(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
  return *this;
}

json_writer& json_writer::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

json_writer& json_writer::string(std::string_view value) {
  separate();
  append_json_string(out_, value);
  return *this;
}

json_writer& json_writer::integer(std::int64_t value) {
  return raw(fmt::format("{}", value));
}

json_writer& json_writer::number(double value) {
  return std::isfinite(value) ? raw(fmt::format("{}", value)) : null();
}

json_writer& json_writer::boolean(bool value) {
  return raw(value ? "true" : "false");
}

json_writer& json_writer::null() {
  return raw("null");
}

json_writer& json_writer::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

std::string json_writer::take() {
  needs_comma_ = false;
  return std::exchange(out_, {});
}

}  // namespace tandem::net

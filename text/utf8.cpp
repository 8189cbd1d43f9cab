#include "text/utf8.hpp"

#include <simdjson.h>

#include <algorithm>

namespace tandem::text {
namespace {

struct lead_byte {
  std::size_t length;        // of the whole character
  unsigned char second_low;  // allowed range of the second byte
  unsigned char second_high;
};

// Table 3-7 of the standard: surrogates, overlong forms and values past U+10FFFF are excluded by the second byte.
lead_byte classify(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

utf8_unit read_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {1, lead, true, false};
  const lead_byte form = classify(lead);
  if (form.length == 0) return {1, 0xFFFD, false, false};
  std::uint32_t code_point = lead & (0xFFu >> (form.length + 1));
  for (std::size_t i = 1; i < form.length; ++i) {
    if (at + i == text.size()) return {i, 0xFFFD, false, true};
    const unsigned char low = i == 1 ? form.second_low : 0x80;
    const unsigned char high = i == 1 ? form.second_high : 0xBF;
    if (byte(at + i) < low || byte(at + i) > high) return {i, 0xFFFD, false, false};
    code_point = (code_point << 6) | (byte(at + i) & 0x3Fu);
  }
  return {form.length, code_point, true, false};
}

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  return text.empty() || simdjson::validate_utf8(text.data(), text.size());
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace tandem::text

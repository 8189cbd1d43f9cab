#include "model/printable.hpp"

#include <fmt/format.h>

namespace tandem::model {
namespace {

// Length of the well-formed UTF-8 character at the start of `text`, 0 when it is none (Unicode standard, table 3-7).
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= max_bytes) return out + "…";
    const std::size_t length = character_bytes(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    const bool control =
        lead < 0x20 || lead == 0x7F || (length == 2 && lead == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (lead == '\n') {
      out += "\\n";
    } else if (length == 0 || control) {
      out += fmt::format("\\x{:02x}", lead);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 || control ? 1 : length);
  }
  return out;
}

}  // namespace tandem::model

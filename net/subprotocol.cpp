#include "net/subprotocol.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tandem::net {
namespace {

// RFC 9110, 5.6.1; empty entries are allowed.
std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> entries;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    entry.remove_prefix(std::min(entry.find_first_not_of(" \t"), entry.size()));
    entry = entry.substr(0, entry.find_last_not_of(" \t") + 1);
    if (!entry.empty()) entries.push_back(entry);
  }
  return entries;
}

// RFC 4648, 5, without padding; nothing when a character is none of the alphabet.
std::optional<std::string> decode_base64url(std::string_view text) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xFFFU;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFFU);
  }
  return bytes;
}

}  // namespace

bool offers_subprotocol(std::string_view header) {
  const auto entries = entries_of(header);
  return std::find(entries.begin(), entries.end(), kSubprotocol) != entries.end();
}

std::optional<std::string> key_of_subprotocol(std::string_view header) {
  for (const std::string_view entry : entries_of(header)) {
    if (entry.starts_with(kKeySubprotocol)) return decode_base64url(entry.substr(kKeySubprotocol.size()));
  }
  return std::nullopt;
}

}  // namespace tandem::net

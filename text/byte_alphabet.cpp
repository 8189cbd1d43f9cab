#include "text/byte_alphabet.hpp"

#include <cstdint>

#include "text/utf8.hpp"

namespace tandem::text {
namespace {

// Printable Latin-1 stands for itself; the other 68 bytes, in order, are U+0100 onwards.
bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::uint32_t kFirstMoved = 0x100;
constexpr std::uint32_t kMoved = 68;

struct alphabet {
  std::array<std::string, 256> characters;
  std::array<int, kFirstMoved + kMoved> bytes;

  alphabet() {
    bytes.fill(-1);
    std::uint32_t moved = kFirstMoved;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint32_t code_point = stands_for_itself(byte) ? byte : moved++;
      append_utf8(characters[byte], code_point);
      bytes[code_point] = static_cast<int>(byte);
    }
  }
};

const alphabet& shared_alphabet() {
  static const alphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

const std::array<std::string, 256>& byte_characters() {
  return shared_alphabet().characters;
}

std::optional<std::string> bytes_of_piece(std::string_view piece) {
  const auto& bytes = shared_alphabet().bytes;
  std::string out;
  for (std::size_t at = 0; at < piece.size();) {
    const utf8_unit unit = read_utf8(piece, at);
    if (unit.code_point >= bytes.size() || bytes[unit.code_point] < 0) return std::nullopt;
    out += static_cast<char>(bytes[unit.code_point]);
    at += unit.length;
  }
  return out;
}

}  // namespace tandem::text

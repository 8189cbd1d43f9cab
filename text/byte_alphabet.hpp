#pragma once
/// GPT-2's alphabet: every byte as one printable character, so that vocabularies can be stored as text.

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::text {

/// The character (UTF-8) that stands for each byte.
const std::array<std::string, 256>& byte_characters();

/// Bytes that `piece` stands for, or nothing when a character of it is not in the alphabet.
std::optional<std::string> bytes_of_piece(std::string_view piece);

}  // namespace tandem::text

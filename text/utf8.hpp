#pragma once
/// UTF-8 reading with replacement by maximal subparts (Unicode standard, chapter 3.9, table 3-7).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::text {

inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

/// What begins at a place of a byte string.
struct utf8_unit {
  std::size_t length = 0;        ///< bytes of the character, or of the maximal ill-formed subpart; ≥ 1
  std::uint32_t code_point = 0;  ///< U+FFFD when ill-formed
  bool valid = false;
  bool truncated = false;  ///< ill-formed only because the text ends here: more bytes could complete it
};

/// Reads at `at`, which must lie inside `text`.
utf8_unit read_utf8(std::string_view text, std::size_t at);

/// Appends the encoding of a Unicode scalar value.
void append_utf8(std::string& out, std::uint32_t code_point);

bool is_valid_utf8(std::string_view text);

/// Characters of valid UTF-8.
std::size_t count_characters(std::string_view text);

}  // namespace tandem::text

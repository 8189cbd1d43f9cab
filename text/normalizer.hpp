#pragma once
/// Unicode normalisation form C in linear time.

#include <string>
#include <string_view>

namespace tandem::text {

/// True when NFC cannot change the text: it has no character from U+0300 on. Cheap.
bool is_trivially_nfc(std::string_view valid_utf8);

/// NFC of valid UTF-8.
std::string to_nfc(std::string_view valid_utf8);

}  // namespace tandem::text

#pragma once
/// UTF-8 checked as it arrives: a wrong byte is known at once, a character may be cut anywhere.

#include <string_view>

namespace tandem::net {

/// One text. Table 3-7 of the Unicode standard as a state.
class utf8_checker {
 public:
  /// False from the first byte on that no well-formed text could have there.
  bool feed(std::string_view bytes) {
    for (const char c : bytes) {
      if (!take(static_cast<unsigned char>(c))) return false;
    }
    return true;
  }
  /// No character is open.
  bool complete() const { return missing_ == 0; }

 private:
  bool take(unsigned byte) {
    if (missing_ > 0) {
      if (byte < low_ || byte > high_) return false;
      --missing_;
      low_ = 0x80;
      high_ = 0xBF;
      return true;
    }
    if (byte < 0x80) return true;
    if (byte < 0xC2 || byte > 0xF4) return false;
    missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    return true;
  }

  int missing_ = 0;      // bytes of the open character
  unsigned low_ = 0x80;  // what the next of them may be
  unsigned high_ = 0xBF;
};

}  // namespace tandem::net

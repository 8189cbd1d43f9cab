#pragma once
/// Follows one JSON value byte by byte, for text that is still being written. Pure syntax: nothing is stored of it.

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem::net {

/// RFC 8259 to the letter, nested at most limits::kMaxJsonDepth deep. Leading white space belongs to the value. Bytes
/// are taken as well-formed UTF-8.
class json_scanner {
 public:
  enum class step {
    more,    ///< the byte belongs to the value, which goes on
    last,    ///< the byte is the value's last one
    past,    ///< the value (a number) ended before this byte
    broken,  ///< no JSON value goes on like this
  };
  /// After `last`, `past` or `broken` the scanner is done.
  step feed(char byte);

 private:
  enum class place { value, first_element, first_key, key, colon, after_value, text, escape, hex, number, word };

  step structural(char byte);
  step begin_value(char byte);
  step begin_number(char byte);
  step begin_word(std::string_view rest);
  step open(char bracket);
  step close(char bracket);
  step after_value(char byte);
  step in_text(char byte);
  step in_escape(char byte);
  step in_hex(char byte);
  step in_number(char byte);
  step in_word(char byte);
  step end_value();

  enum class digits { sign, zero, whole, point, fraction, exponent, exponent_sign, power };

  place at_ = place::value;
  digits number_ = digits::sign;
  std::string open_;            // brackets that are open
  std::string_view word_rest_;  // of true, false or null
  int hex_left_ = 0;
  bool text_is_key_ = false;
};

}  // namespace tandem::net

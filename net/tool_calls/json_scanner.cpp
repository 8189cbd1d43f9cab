#include "net/tool_calls/json_scanner.hpp"

#include "config/limits.hpp"

namespace tandem::net {
namespace {

bool is_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}
bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}
bool is_hex(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

}  // namespace

json_scanner::step json_scanner::feed(char byte) {
  switch (at_) {
    case place::text:
      return in_text(byte);
    case place::escape:
      return in_escape(byte);
    case place::hex:
      return in_hex(byte);
    case place::number:
      return in_number(byte);
    case place::word:
      return in_word(byte);
    default:
      return is_space(byte) ? step::more : structural(byte);
  }
}

json_scanner::step json_scanner::structural(char byte) {
  switch (at_) {
    case place::first_element:
      return byte == ']' ? close('[') : begin_value(byte);
    case place::first_key:
      if (byte == '}') return close('{');
      [[fallthrough]];
    case place::key:
      if (byte != '"') return step::broken;
      at_ = place::text;
      text_is_key_ = true;
      return step::more;
    case place::colon:
      at_ = place::value;
      return byte == ':' ? step::more : step::broken;
    case place::after_value:
      return after_value(byte);
    default:
      return begin_value(byte);
  }
}

json_scanner::step json_scanner::begin_value(char byte) {
  switch (byte) {
    case '{':
    case '[':
      return open(byte);
    case '"':
      at_ = place::text;
      text_is_key_ = false;
      return step::more;
    case 't':
      return begin_word("rue");
    case 'f':
      return begin_word("alse");
    case 'n':
      return begin_word("ull");
    default:
      return begin_number(byte);
  }
}

json_scanner::step json_scanner::begin_number(char byte) {
  if (byte != '-' && !is_digit(byte)) return step::broken;
  at_ = place::number;
  number_ = byte == '-' ? digits::sign : byte == '0' ? digits::zero : digits::whole;
  return step::more;
}

json_scanner::step json_scanner::begin_word(std::string_view rest) {
  at_ = place::word;
  word_rest_ = rest;
  return step::more;
}

json_scanner::step json_scanner::open(char bracket) {
  if (open_.size() >= limits::kMaxJsonDepth) return step::broken;
  open_ += bracket;
  at_ = bracket == '{' ? place::first_key : place::first_element;
  return step::more;
}

json_scanner::step json_scanner::close(char bracket) {
  if (open_.empty() || open_.back() != bracket) return step::broken;
  open_.pop_back();
  return end_value();
}

json_scanner::step json_scanner::after_value(char byte) {
  if (byte == '}') return close('{');
  if (byte == ']') return close('[');
  if (byte != ',') return step::broken;
  at_ = open_.back() == '{' ? place::key : place::value;
  return step::more;
}

json_scanner::step json_scanner::in_text(char byte) {
  if (static_cast<unsigned char>(byte) < 0x20) return step::broken;
  if (byte == '\\') at_ = place::escape;
  if (byte != '"') return step::more;
  if (!text_is_key_) return end_value();
  at_ = place::colon;
  return step::more;
}

json_scanner::step json_scanner::in_escape(char byte) {
  constexpr std::string_view kEscapes = "\"\\/bfnrtu";
  if (kEscapes.find(byte) == std::string_view::npos) return step::broken;
  at_ = byte == 'u' ? place::hex : place::text;
  hex_left_ = 4;
  return step::more;
}

json_scanner::step json_scanner::in_hex(char byte) {
  if (!is_hex(byte)) return step::broken;
  if (--hex_left_ == 0) at_ = place::text;
  return step::more;
}

json_scanner::step json_scanner::in_number(char byte) {
  const auto go = [this](digits next) {
    number_ = next;
    return step::more;
  };
  const bool in_whole = number_ == digits::zero || number_ == digits::whole;
  const bool may_end = in_whole || number_ == digits::fraction || number_ == digits::power;
  if (is_digit(byte)) {
    if (number_ == digits::zero) return step::broken;
    if (number_ == digits::sign) return go(byte == '0' ? digits::zero : digits::whole);
    if (number_ == digits::point) return go(digits::fraction);
    if (number_ == digits::exponent || number_ == digits::exponent_sign) return go(digits::power);
    return step::more;
  }
  if (byte == '.' && in_whole) return go(digits::point);
  if ((byte == 'e' || byte == 'E') && (in_whole || number_ == digits::fraction)) return go(digits::exponent);
  if ((byte == '+' || byte == '-') && number_ == digits::exponent) return go(digits::exponent_sign);
  if (!may_end) return step::broken;
  if (open_.empty()) return step::past;
  at_ = place::after_value;
  return is_space(byte) ? step::more : after_value(byte);
}

json_scanner::step json_scanner::in_word(char byte) {
  if (byte != word_rest_.front()) return step::broken;
  word_rest_.remove_prefix(1);
  return word_rest_.empty() ? end_value() : step::more;
}

json_scanner::step json_scanner::end_value() {
  if (open_.empty()) return step::last;
  at_ = place::after_value;
  return step::more;
}

}  // namespace tandem::net

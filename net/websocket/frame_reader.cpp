#include "net/websocket/frame_reader.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "net/json_text.hpp"

namespace tandem::net {
namespace {

constexpr unsigned kFinal = 0x80;
constexpr unsigned kCompressed = 0x40;  // RSV1
constexpr unsigned kReserved = 0x30;    // RSV2, RSV3
constexpr unsigned kMasked = 0x80;
constexpr std::size_t kMaxControlBytes = 125;
constexpr std::size_t kMaskBytes = 4;

unsigned byte_at(const std::string& text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

std::size_t length_bytes(unsigned short_length) {
  return short_length == 127 ? 8 : short_length == 126 ? 2 : 0;
}

// 1004 to 1006 and 1015 are never sent; below 3000 only registered ones.
bool may_be_sent(unsigned code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

}  // namespace

frame_reader::event frame_reader::fail(close_code code) {
  code_ = code;
  message_ = {};
  inflater_.reset();
  return event::failed;
}

std::string frame_reader::take() {
  return std::exchange(ready_, {});
}

frame_reader::event frame_reader::feed(std::string_view& input) {
  while (true) {
    if (part_ == part::header) {
      if (!fill_header(input)) return event::more;
      if (const event happened = begin_frame(); happened != event::more) return happened;
    }
    const std::size_t count = std::min<std::uint64_t>(left_, input.size());
    const std::string_view bytes = input.substr(0, count);
    input.remove_prefix(count);
    if (const event happened = feed_payload(bytes); happened != event::more) return happened;
    if (left_ > 0) return event::more;
    part_ = part::header;
    header_.clear();
    if (const event happened = end_frame(); happened != event::more) return happened;
  }
}

// An unmasked frame is refused at its second byte: what would follow is not the mask.
bool frame_reader::fill_header(std::string_view& input) {
  std::size_t wanted = 2;
  while (true) {
    if (header_.size() >= 2) {
      const unsigned second = byte_at(header_, 1);
      wanted = 2 + length_bytes(second & 0x7F) + ((second & kMasked) != 0 ? kMaskBytes : 0);
    }
    if (header_.size() >= wanted) return true;
    if (input.empty()) return false;
    const std::size_t count = std::min(wanted - header_.size(), input.size());
    header_ += input.substr(0, count);
    input.remove_prefix(count);
  }
}

frame_reader::event frame_reader::begin_frame() {
  const unsigned first = byte_at(header_, 0);
  const unsigned second = byte_at(header_, 1);
  const bool compressed = (first & kCompressed) != 0;
  if ((first & kReserved) != 0 || (second & kMasked) == 0) return fail(close_code::protocol_error);
  length_ = second & 0x7F;
  if (const std::size_t wide = length_bytes(second & 0x7F); wide > 0) {
    length_ = 0;
    for (std::size_t i = 0; i < wide; ++i) length_ = (length_ << 8) | byte_at(header_, 2 + i);
    const bool shortest = wide == 2 ? length_ > kMaxControlBytes : length_ > 0xFFFF && (length_ >> 63) == 0;
    if (!shortest) return fail(close_code::protocol_error);
  }
  left_ = length_;
  final_ = (first & kFinal) != 0;
  part_ = part::payload;
  switch (first & 0x0F) {
    case 0:
    case 1:
    case 2:
      frame_ = static_cast<opcode>(first & 0x0F);
      return begin_data(frame_ != opcode::continuation, compressed);
    case 8:
    case 9:
    case 10:
      frame_ = static_cast<opcode>(first & 0x0F);
      return compressed ? fail(close_code::protocol_error) : begin_control();
    default:
      return fail(close_code::protocol_error);
  }
}

frame_reader::event frame_reader::begin_data(bool first, bool compressed) {
  const bool open = kind_ != opcode::continuation;
  if (first == open) return fail(close_code::protocol_error);
  if (compressed && (!deflate_ || !first)) return fail(close_code::protocol_error);
  if (length_ > max_message_bytes_ - message_.size()) return fail(close_code::too_big);
  if (!first) return event::more;
  kind_ = frame_;
  utf8_ = {};
  if (compressed) inflater_ = std::make_unique<message_inflater>();
  return event::more;
}

frame_reader::event frame_reader::begin_control() {
  control_.clear();
  return final_ && length_ <= kMaxControlBytes ? event::more : fail(close_code::protocol_error);
}

frame_reader::event frame_reader::feed_payload(std::string_view bytes) {
  const std::uint64_t done = length_ - left_;
  left_ -= bytes.size();
  std::string plain(bytes);
  const char* mask = header_.data() + (header_.size() - kMaskBytes);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<char>(plain[i] ^ mask[(done + i) % kMaskBytes]);
  if (frame_ <= opcode::binary) return feed_message(plain);
  control_ += plain;
  return event::more;
}

frame_reader::event frame_reader::feed_message(std::string_view bytes) {
  const std::size_t before = message_.size();
  if (!inflater_) {
    message_ += bytes;
    return check_text(before);
  }
  switch (inflater_->feed(bytes, message_, max_message_bytes_)) {
    case message_inflater::outcome::ok:
      return check_text(before);
    case message_inflater::outcome::corrupt:
      return fail(close_code::bad_payload);
    case message_inflater::outcome::too_large:
      return fail(close_code::too_big);
  }
  return event::more;
}

frame_reader::event frame_reader::check_text(std::size_t from) {
  if (kind_ != opcode::text || utf8_.feed(std::string_view(message_).substr(from))) return event::more;
  return fail(close_code::bad_payload);
}

frame_reader::event frame_reader::end_frame() {
  switch (frame_) {
    case opcode::ping:
      ready_ = std::exchange(control_, {});
      return event::ping;
    case opcode::pong:
      control_ = {};
      return event::pong;
    case opcode::close:
      return end_close();
    default:
      return final_ ? end_message() : event::more;
  }
}

frame_reader::event frame_reader::end_message() {
  if (inflater_) {
    const std::size_t before = message_.size();
    const auto outcome = inflater_->finish(message_, max_message_bytes_);
    inflater_.reset();
    if (outcome == message_inflater::outcome::too_large) return fail(close_code::too_big);
    if (outcome == message_inflater::outcome::corrupt) return fail(close_code::bad_payload);
    if (const event happened = check_text(before); happened != event::more) return happened;
  }
  const opcode kind = std::exchange(kind_, opcode::continuation);
  if (kind == opcode::text && !utf8_.complete()) return fail(close_code::bad_payload);
  ready_ = std::exchange(message_, {});
  return kind == opcode::text ? event::text : event::binary;
}

frame_reader::event frame_reader::end_close() {
  if (control_.empty()) {
    code_ = close_code::none;
    return event::close;
  }
  if (control_.size() == 1) return fail(close_code::protocol_error);
  const unsigned code = (byte_at(control_, 0) << 8) | byte_at(control_, 1);
  if (!may_be_sent(code)) return fail(close_code::protocol_error);
  if (!is_utf8(std::string_view(control_).substr(2))) return fail(close_code::bad_payload);
  code_ = static_cast<close_code>(code);
  return event::close;
}

}  // namespace tandem::net

#include "net/websocket/frame_writer.hpp"

#include <cstdint>

namespace tandem::net {
namespace {

constexpr std::size_t kMaxReasonBytes = 123;  // of a close frame, beside its code

void append_number(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

}  // namespace

std::string frame_bytes(opcode kind, std::string_view payload, bool compressed) {
  std::string out;
  out.reserve(payload.size() + 10);
  out += static_cast<char>(0x80 | (compressed ? 0x40 : 0) | static_cast<int>(kind));
  if (payload.size() <= 125) {
    out += static_cast<char>(payload.size());
  } else if (payload.size() <= 0xFFFF) {
    out += static_cast<char>(126);
    append_number(out, payload.size(), 2);
  } else {
    out += static_cast<char>(127);
    append_number(out, payload.size(), 8);
  }
  return out += payload;
}

std::string close_frame(close_code code, std::string_view reason) {
  std::string payload;
  if (code != close_code::none) {
    append_number(payload, static_cast<std::uint16_t>(code), 2);
    payload += reason.substr(0, kMaxReasonBytes);
  }
  return frame_bytes(opcode::close, payload);
}

}  // namespace tandem::net

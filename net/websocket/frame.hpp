#pragma once
/// What RFC 6455 names: opcodes and close codes.

#include <cstdint>

namespace tandem::net {

enum class opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

enum class close_code : std::uint16_t {
  none = 0,  ///< a close frame without a code
  normal = 1000,
  going_away = 1001,
  protocol_error = 1002,
  unknown_data = 1003,
  bad_payload = 1007,
  too_big = 1009,
};

}  // namespace tandem::net

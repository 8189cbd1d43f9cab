#pragma once
/// RFC 6455's client side by hand, so that it can also be broken.

#include <cstdint>
#include <string>

#include "tests/net/raw_client.hpp"

namespace tandem::net::test {

struct ws_frame {
  int opcode = -1;  ///< -1: the connection ended
  bool final = true;
  bool compressed = false;
  std::string payload;
  int close_code() const {
    if (opcode != 8 || payload.size() < 2) return 0;
    return (static_cast<unsigned char>(payload[0]) << 8) | static_cast<unsigned char>(payload[1]);
  }
};

/// How a frame is built; the defaults make a right one.
struct frame_shape {
  bool final = true;
  bool masked = true;
  int reserved = 0;  ///< RSV1 to RSV3 as the bits 4, 2, 1
  std::string mask{"\x37\xFA\x21\x3D"};
};

class ws_client {
 public:
  explicit ws_client(std::uint16_t port, const std::string& fields = {}, const std::string& path = "/ws") : raw(port) {
    raw.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + fields +
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
    handshake = raw.response(true);
  }

  static std::string frame(int opcode, const std::string& payload, const frame_shape& shape = {}) {
    std::string out{static_cast<char>((shape.final ? 0x80 : 0) | (shape.reserved << 4) | opcode)};
    const int mask_bit = shape.masked ? 0x80 : 0;
    if (payload.size() < 126) {
      out += static_cast<char>(mask_bit | static_cast<int>(payload.size()));
    } else {
      const bool large = payload.size() > 0xFFFF;
      out += static_cast<char>(mask_bit | (large ? 127 : 126));
      for (int shift = large ? 56 : 8; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift);
    }
    if (!shape.masked) return out + payload;
    out += shape.mask;
    for (std::size_t i = 0; i < payload.size(); ++i) out += static_cast<char>(payload[i] ^ shape.mask[i % 4]);
    return out;
  }
  static std::string open_frame(int opcode, const std::string& payload) { return frame(opcode, payload, {false}); }
  void text(const std::string& payload) { raw.send(frame(1, payload)); }

  ws_frame next() {
    ws_frame out;
    const std::string head = raw.take_exactly(2);
    if (head.size() < 2) return out;
    out.opcode = head[0] & 0x0F;
    out.final = (head[0] & 0x80) != 0;
    out.compressed = (head[0] & 0x40) != 0;
    std::size_t length = static_cast<std::size_t>(head[1] & 0x7F);
    if (length >= 126) {
      std::size_t wide = 0;
      for (const char byte : raw.take_exactly(length == 126 ? 2 : 8)) {
        wide = (wide << 8) | static_cast<unsigned char>(byte);
      }
      length = wide;
    }
    out.payload = raw.take_exactly(length);
    return out;
  }
  /// The next text message, joined from its fragments, or the frame that came instead.
  ws_frame message() {
    ws_frame whole = next();
    while (whole.opcode == 1 && !whole.final) {
      const ws_frame part = next();
      if (part.opcode != 0) return part;
      whole.payload += part.payload;
      whole.final = part.final;
    }
    return whole;
  }
  /// Frames up to and including one that holds `mark`.
  std::string until(const std::string& mark) {
    std::string all;
    while (all.find(mark) == std::string::npos) {
      const ws_frame got = message();
      if (got.opcode != 1) return all;
      all += got.payload + "\n";
    }
    return all;
  }

  raw_client raw;
  raw_response handshake;
};

}  // namespace tandem::net::test

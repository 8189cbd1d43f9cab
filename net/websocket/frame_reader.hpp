#pragma once
/// Bytes of a WebSocket client → messages, pings, closes, or why the connection must fail. No sockets.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/websocket/deflate.hpp"
#include "net/websocket/frame.hpp"
#include "net/websocket/utf8_checker.hpp"

namespace tandem::net {

/// RFC 6455, the server's side, and RFC 7692 where it was agreed on. Memory is what arrived (inflated), never what a
/// header announces, and at most `max_message_bytes`.
class frame_reader {
 public:
  enum class event {
    more,    ///< all bytes are used; nothing is complete
    text,    ///< take() gives a message, well-formed UTF-8
    binary,  ///< take() gives a message
    ping,    ///< take() gives its payload
    pong,
    close,   ///< code() is the peer's, `none` when it gave none
    failed,  ///< code() says how to close; nothing more may be fed
  };
  frame_reader(std::size_t max_message_bytes, bool deflate)
      : max_message_bytes_(max_message_bytes), deflate_(deflate) {}

  /// Takes bytes off the front of `input` until something happened.
  event feed(std::string_view& input);
  std::string take();
  close_code code() const { return code_; }

 private:
  enum class part { header, payload };

  event fail(close_code code);
  bool fill_header(std::string_view& input);
  event begin_frame();
  event begin_data(bool first, bool compressed);
  event begin_control();
  event feed_payload(std::string_view bytes);
  event feed_message(std::string_view bytes);
  event check_text(std::size_t from);
  event end_frame();
  event end_message();
  event end_close();

  std::size_t max_message_bytes_;
  bool deflate_;
  part part_ = part::header;
  std::string header_;        // so far
  std::uint64_t left_ = 0;    // payload bytes of this frame still to come
  std::uint64_t length_ = 0;  // of this frame's payload
  opcode frame_ = opcode::continuation;
  bool final_ = false;
  // The message that arrives, possibly in fragments:
  opcode kind_ = opcode::continuation;  // continuation: none is open
  std::string message_;
  std::unique_ptr<message_inflater> inflater_;
  utf8_checker utf8_;
  std::string control_;  // payload of a control frame
  std::string ready_;    // what take() gives
  close_code code_ = close_code::none;
};

}  // namespace tandem::net

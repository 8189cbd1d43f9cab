#pragma once
/// RFC 7692's compression of one message, without context takeover: nothing is kept from one message to the next.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tandem::net {

/// Owner: a frame_reader, while a compressed message arrives. About 40 KiB.
class message_inflater {
 public:
  enum class outcome { ok, corrupt, too_large };
  message_inflater();
  ~message_inflater();

  /// Appends what `bytes` mean to `out`, which does not grow beyond `max_bytes`.
  outcome feed(std::string_view bytes, std::string& out, std::size_t max_bytes);
  /// After the message's last byte: the tail that the sender left out.
  outcome finish(std::string& out, std::size_t max_bytes);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Owner: an io lane, for all its sockets, because a message is compressed in one go. About 300 KiB once used.
class message_deflater {
 public:
  message_deflater();
  ~message_deflater();

  /// `window_bits`: 9 to 15, what the client agreed to.
  std::string deflate(std::string_view message, int window_bits);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace tandem::net

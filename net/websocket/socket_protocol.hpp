#pragma once
/// What is spoken in the text frames of one WebSocket, apart from how frames travel.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/io_lane.hpp"
#include "net/websocket/frame.hpp"

namespace tandem::net {

/// The way out. Implemented by the session; used on its lane only, and not after socket_protocol::on_closed().
class socket_channel {
 public:
  virtual ~socket_channel() = default;
  /// Queued behind what was sent before. A client that leaves too much unread is cut off.
  virtual void send(std::string_view text) = 0;
  /// Bytes queued and not yet taken by the connection.
  virtual std::size_t unsent() const = 0;
  /// The protocol has nothing under way any more; lets a server that shuts down close the socket.
  virtual void on_quiet() = 0;
};

/// Owner: the session. Called on its lane only; a call may come while the protocol is sending.
class socket_protocol {
 public:
  virtual ~socket_protocol() = default;
  virtual void on_text(const std::string& text) = 0;
  /// Everything that was sent is out.
  virtual void on_drained() = 0;
  /// The server shuts down: what runs may end, nothing new is taken.
  virtual void on_finish() = 0;
  /// Nothing runs.
  virtual bool quiet() const = 0;
  /// The last call. `lost`: the connection broke without a word, so the client may come back.
  virtual void on_closed(bool lost) = 0;
};

/// Who opened the socket: its requests count as this key's. Absent: no key is wanted.
using socket_key = std::optional<api_keys::index>;
using protocol_maker = std::unique_ptr<socket_protocol> (*)(io_lane&, socket_channel&, socket_key);

/// GET /ws (frame_protocol.cpp).
std::unique_ptr<socket_protocol> make_frame_protocol(io_lane& lane, socket_channel& channel, socket_key key);

}  // namespace tandem::net

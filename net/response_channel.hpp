#pragma once
/// How an endpoint answers one HTTP request. Implemented by the session; used on its lane only.

#include <string>
#include <string_view>

#include "net/api_keys.hpp"
#include "net/http_message.hpp"

namespace tandem::net {

/// Either send() once, or begin_stream(), any number of write(), end_stream().
class response_channel {
 public:
  virtual ~response_channel() = default;
  virtual void send(http_response response) = 0;
  /// `head` without a body. `ping` is sent whenever nothing else was for a while; empty: never.
  virtual void begin_stream(http_response head, std::string_view ping) = 0;
  /// A client that does not read is cut off, which abandons the call.
  virtual void write(std::string_view bytes) = 0;
  /// `broken`: the stream ended with an error and the connection is closed behind it.
  virtual void end_stream(bool broken) = 0;
  /// What makes the request count as its key's: for work that goes on behind the answer.
  virtual key_lease hand_over_lease() = 0;
};

/// A request under way on a connection.
class running_call {
 public:
  virtual ~running_call() = default;
  /// The client is gone or the connection is cut: nothing more may be written.
  virtual void abandon() = 0;
};

}  // namespace tandem::net

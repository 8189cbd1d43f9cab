#pragma once
/// The network edge's public face. Bind first, load the model, then serve: a taken port is known at once.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/runtime.hpp"
#include "config/edge_limits.hpp"
#include "config/limits.hpp"
#include "core/result.hpp"
#include "net/cross_origin.hpp"
#include "net/tls_files.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {

struct server_timeouts {
  std::chrono::milliseconds handshake = limits::kHandshakeTimeout;  ///< of TLS
  std::chrono::milliseconds header = limits::kHeaderTimeout;
  std::chrono::milliseconds body = limits::kBodyTimeout;
  std::chrono::milliseconds idle = limits::kIdleTimeout;    ///< keep-alive and WebSocket
  std::chrono::milliseconds write = limits::kWriteTimeout;  ///< without any progress
  std::chrono::milliseconds stream_ping = limits::kStreamPing;
  std::chrono::milliseconds detached = limits::kDetachedResponse;  ///< of a response whose socket was lost
};

struct server_options {
  std::string host = "127.0.0.1";         ///< name or address, IPv4 or IPv6
  std::uint16_t port = 8000;              ///< 0: a free one
  std::vector<std::string> api_keys;      ///< empty: open to all who can connect
  std::vector<std::string> served_names;  ///< the first is the one answers carry; empty: the runtime's model_name
  std::size_t max_requests_per_key = 0;   ///< at once, of each key; 0: no bound
  std::optional<tls_files> tls;           ///< absent: in the clear
  cross_origin_rules cross_origin;
  std::optional<tool_call_format> tool_calls;  ///< absent: as the chat template asks its model
  std::size_t io_threads = 1;                  ///< ≤ limits::kMaxIoThreads
  std::size_t max_connections = limits::kMaxConnections;
  std::size_t max_body_bytes = limits::kMaxBodyBytes;
  std::size_t max_unfinished_body_bytes = limits::kMaxUnfinishedBodyBytes;  ///< of all connections together
  std::size_t max_outbox_bytes = limits::kMaxOutboxBytes;
  server_timeouts timeouts;
};

/// A bound listener with its io threads. Owner: the app.
class server {
 public:
  /// Binds and starts to answer: /live says 200 from now on, everything else 503 until serve().
  /// Errors: io (address in use, not available here, unknown host), invalid_argument; those of load_tls().
  static result<std::unique_ptr<server>> bind(server_options options);
  ~server();

  std::uint16_t port() const;
  /// "http://127.0.0.1:8000" (or https), ready to be printed.
  std::string url() const;

  /// The model is loaded. The runtime is shared until the server is gone.
  void serve(std::shared_ptr<runtime> engine);

  /// Reads certificate and key again, for connections made from now on; open ones stay as they are. After an error the
  /// old ones go on. Errors: as bind().
  result<void> reload_certificate();

  /// No new connections; those that idle are closed. Running requests go on. Drain the runtime, then stop().
  void stop_accepting();
  /// Lets running requests end for at most `bound`, closes WebSockets with 1001, then ends the io threads. Idempotent.
  void stop(std::chrono::milliseconds bound);

 private:
  struct impl;
  explicit server(std::unique_ptr<impl> state);
  std::unique_ptr<impl> impl_;
};

}  // namespace tandem::net

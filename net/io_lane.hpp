#pragma once
/// One io thread's world. Everything here but `context` and `bridge` is touched on that thread only, so a connection,
/// which lives on one lane, needs no locks: the lane is its strand.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "actors/runtime.hpp"
#include "net/api_keys.hpp"
#include "net/bridge.hpp"
#include "net/call_registry.hpp"
#include "net/openai_requests.hpp"
#include "net/responses/response_store.hpp"
#include "net/server.hpp"
#include "net/websocket/deflate.hpp"

namespace tandem::net {

/// An open connection, HTTP or WebSocket.
class connection {
 public:
  virtual ~connection() = default;
  /// Ends when what it does is done; at once when idle.
  virtual void finish() = 0;
  /// Ends now; its requests are cancelled.
  virtual void abort() = 0;
};

class response_run;

/// What all lanes share.
struct edge_state {
  explicit edge_state(server_options chosen)
      : options(std::move(chosen)), keys(options.api_keys, options.max_requests_per_key) {}

  server_options options;
  api_keys keys;
  call_registry calls;
  response_store responses;
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> body_bytes{0};  ///< of requests that are being received
};

struct io_lane {
  explicit io_lane(edge_state& shared) : door(std::make_shared<bridge>(context)), edge(shared), context(1) {}

  std::shared_ptr<bridge> door;
  edge_state& edge;
  std::shared_ptr<runtime> engine;  ///< null while the model loads
  request_facts facts;              ///< of the engine
  bool stopping = false;
  message_deflater deflater;                               ///< for all WebSockets of the lane
  std::unordered_set<std::shared_ptr<response_run>> runs;  ///< responses being made
  std::unordered_map<connection*, std::weak_ptr<connection>> connections;
  // Last, so that it goes first: connections that its queue still holds need the members above.
  boost::asio::io_context context;
};

/// Keeps count of a connection for the time of its life. Owner: the connection.
class lane_membership {
 public:
  lane_membership(io_lane& lane, connection* self) : lane_(lane), self_(self) { ++lane_.edge.connections; }
  ~lane_membership() {
    lane_.connections.erase(self_);
    --lane_.edge.connections;
  }
  lane_membership(const lane_membership&) = delete;
  lane_membership& operator=(const lane_membership&) = delete;
  void enter(std::weak_ptr<connection> weak) { lane_.connections[self_] = std::move(weak); }

 private:
  io_lane& lane_;
  connection* self_;
};

}  // namespace tandem::net

#pragma once
/// The sending half of a connection: one write in flight, what waits is counted, no progress for too long ends it.

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/byte_stream.hpp"

namespace tandem::net {

/// Owner: a session, which `owner` keeps alive while a write is in flight. Used on the session's lane.
class socket_writer {
 public:
  struct events {
    std::function<void()> on_drained;  ///< nothing waits any more
    std::function<void()> on_failed;   ///< the peer is gone or does not read
  };
  socket_writer(byte_stream& stream, std::chrono::milliseconds stall_limit, events handlers);

  void send(std::string_view bytes, const std::shared_ptr<void>& owner);
  std::size_t waiting() const { return waiting_.size() + writing_.size() - written_; }
  bool idle() const { return !in_flight_; }
  void stop();

 private:
  void write_some(const std::shared_ptr<void>& owner);
  void watch(const std::shared_ptr<void>& owner);

  byte_stream& stream_;
  boost::asio::steady_timer stall_timer_;
  std::chrono::milliseconds stall_limit_;
  events handlers_;
  std::string waiting_;
  std::string writing_;
  std::size_t written_ = 0;
  bool in_flight_ = false;
  bool stopped_ = false;
};

}  // namespace tandem::net

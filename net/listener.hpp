#pragma once
/// A bound TCP port that hands out connections.

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "core/result.hpp"

namespace tandem::net {

/// Binds and listens. Errors: io naming host and port (in use, no such address, unknown host).
/// With SO_REUSEADDR, so that a restart is quick; without SO_REUSEPORT, so that two servers never share a port.
result<boost::asio::ip::tcp::acceptor> bind_port(boost::asio::io_context& context, const std::string& host,
                                                 std::uint16_t port);

/// Accepts until stop(). Lives on the acceptor's lane; kept alive by its pending accept.
class listener final : public std::enable_shared_from_this<listener> {
 public:
  /// `next_context` says on which io thread the next connection will live; `accept` is called on the listener's thread.
  struct events {
    std::function<boost::asio::io_context&()> next_context;
    std::function<void(boost::asio::ip::tcp::socket)> accept;
  };
  listener(boost::asio::ip::tcp::acceptor acceptor, events handlers);
  void start();
  void stop();

 private:
  void pause();
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_timer_;
  events handlers_;
};

}  // namespace tandem::net

#include "net/listener.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "config/limits.hpp"

namespace tandem::net {
namespace asio = boost::asio;
using io_error = boost::system::error_code;

namespace {

tl::unexpected<error> cannot_bind(const std::string& host, std::uint16_t port, const io_error& reason) {
  const bool taken = reason == asio::error::address_in_use;
  return fail(error_code::io,
              fmt::format("Cannot listen on {} port {}: {}; {}.", host, port, reason.message(),
                          taken ? "stop the other server or choose another --port" : "choose another --host or --port"),
              taken ? "--port" : "--host");
}

}  // namespace

result<asio::ip::tcp::acceptor> bind_port(asio::io_context& context, const std::string& host, std::uint16_t port) {
  io_error reason;
  asio::ip::tcp::endpoint endpoint(asio::ip::make_address(host, reason), port);
  if (reason) {
    asio::ip::tcp::resolver resolver(context);
    const auto found = resolver.resolve(host, std::to_string(port), asio::ip::tcp::resolver::passive, reason);
    if (reason || found.empty()) return cannot_bind(host, port, reason);
    endpoint = found.begin()->endpoint();
  }
  asio::ip::tcp::acceptor acceptor(context);
  acceptor.open(endpoint.protocol(), reason);
  if (!reason) acceptor.set_option(asio::socket_base::reuse_address(true), reason);
  if (!reason) acceptor.bind(endpoint, reason);
  if (!reason) acceptor.listen(limits::kListenBacklog, reason);
  if (reason) return cannot_bind(host, port, reason);
  return acceptor;
}

listener::listener(asio::ip::tcp::acceptor acceptor, events handlers)
    : acceptor_(std::move(acceptor)), pause_timer_(acceptor_.get_executor()), handlers_(std::move(handlers)) {}

void listener::start() {
  if (!acceptor_.is_open()) return;
  acceptor_.async_accept(handlers_.next_context(),
                         [self = shared_from_this()](const io_error& reason, asio::ip::tcp::socket socket) {
                           if (reason == asio::error::operation_aborted) return;
                           if (reason) return self->pause();
                           self->handlers_.accept(std::move(socket));
                           self->start();
                         });
}

// Out of file descriptors, most likely: accepting again at once would spin.
void listener::pause() {
  pause_timer_.expires_after(std::chrono::milliseconds(100));
  pause_timer_.async_wait([self = shared_from_this()](const io_error& reason) {
    if (!reason) self->start();
  });
}

void listener::stop() {
  io_error ignored;
  acceptor_.close(ignored);
  pause_timer_.cancel();
}

}  // namespace tandem::net

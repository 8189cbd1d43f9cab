#pragma once
/// The bytes of one connection, in the clear or through TLS. Sessions see no difference.

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>

namespace boost::asio::ssl {
class context;
}

namespace tandem::net {

/// One read and one write may be under way at once. Lives on its lane. Owner: a session, which its handlers keep alive.
class byte_stream {
 public:
  using io_error = boost::system::error_code;
  using executor_type = boost::asio::ip::tcp::socket::executor_type;
  using done = std::function<void(const io_error&, std::size_t bytes)>;

  virtual ~byte_stream() = default;
  virtual executor_type get_executor() = 0;
  /// Before anything else. In the clear it is done at once, inside the call.
  virtual void handshake(std::function<void(const io_error&)> handler) = 0;
  virtual void read_some(boost::asio::mutable_buffer into, done handler) = 0;
  virtual void write_some(boost::asio::const_buffer from, done handler) = 0;
  /// Nothing more is sent; the peer learns so. Requires that no write is under way.
  virtual void end_sending() = 0;
  virtual void close() = 0;
  virtual bool is_open() const = 0;
};

std::unique_ptr<byte_stream> make_plain_stream(boost::asio::ip::tcp::socket socket);
std::unique_ptr<byte_stream> make_tls_stream(boost::asio::ip::tcp::socket socket,
                                             std::shared_ptr<boost::asio::ssl::context> context);

}  // namespace tandem::net

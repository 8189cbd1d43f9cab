// The one file that instantiates Asio's TLS stream.

#include <boost/asio/ssl/stream.hpp>
#include <utility>

#include "net/byte_stream.hpp"

namespace tandem::net {
namespace {

namespace asio = boost::asio;

// A session may let go of its stream while the farewell of TLS is under way: the state outlives it.
struct tls_state {
  tls_state(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> settings)
      : context(std::move(settings)), stream(std::move(socket), *context) {}
  std::shared_ptr<asio::ssl::context> context;
  asio::ssl::stream<asio::ip::tcp::socket> stream;
};

class tls_stream final : public byte_stream {
 public:
  tls_stream(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> context)
      : state_(std::make_shared<tls_state>(std::move(socket), std::move(context))) {}

  executor_type get_executor() override { return state_->stream.get_executor(); }
  void handshake(std::function<void(const io_error&)> handler) override {
    state_->stream.async_handshake(asio::ssl::stream_base::server, std::move(handler));
  }
  void read_some(asio::mutable_buffer into, done handler) override {
    state_->stream.async_read_some(into, std::move(handler));
  }
  void write_some(asio::const_buffer from, done handler) override {
    state_->stream.async_write_some(from, std::move(handler));
  }
  void end_sending() override {
    state_->stream.async_shutdown([state = state_](const io_error&) {
      io_error ignored;
      state->stream.lowest_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    });
  }
  void close() override {
    io_error ignored;
    state_->stream.lowest_layer().close(ignored);
  }
  bool is_open() const override { return state_->stream.lowest_layer().is_open(); }

 private:
  std::shared_ptr<tls_state> state_;
};

}  // namespace

std::unique_ptr<byte_stream> make_tls_stream(asio::ip::tcp::socket socket,
                                             std::shared_ptr<asio::ssl::context> context) {
  return std::make_unique<tls_stream>(std::move(socket), std::move(context));
}

}  // namespace tandem::net

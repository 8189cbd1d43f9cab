#include <utility>

#include "net/byte_stream.hpp"

namespace tandem::net {
namespace {

namespace asio = boost::asio;

class plain_stream final : public byte_stream {
 public:
  explicit plain_stream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  executor_type get_executor() override { return socket_.get_executor(); }
  void handshake(std::function<void(const io_error&)> handler) override { handler({}); }
  void read_some(asio::mutable_buffer into, done handler) override {
    socket_.async_read_some(into, std::move(handler));
  }
  void write_some(asio::const_buffer from, done handler) override {
    socket_.async_write_some(from, std::move(handler));
  }
  void end_sending() override {
    io_error ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  void close() override {
    io_error ignored;
    socket_.close(ignored);
  }
  bool is_open() const override { return socket_.is_open(); }

 private:
  asio::ip::tcp::socket socket_;
};

}  // namespace

std::unique_ptr<byte_stream> make_plain_stream(asio::ip::tcp::socket socket) {
  return std::make_unique<plain_stream>(std::move(socket));
}

}  // namespace tandem::net

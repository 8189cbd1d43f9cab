#include "net/socket_writer.hpp"

#include <boost/asio/buffer.hpp>
#include <utility>

#include "config/limits.hpp"

namespace tandem::net {

socket_writer::socket_writer(byte_stream& stream, std::chrono::milliseconds stall_limit, events handlers)
    : stream_(stream), stall_timer_(stream.get_executor()), stall_limit_(stall_limit), handlers_(std::move(handlers)) {}

void socket_writer::send(std::string_view bytes, const std::shared_ptr<void>& owner) {
  if (stopped_) return;
  waiting_ += bytes;
  if (in_flight_ || waiting_.empty()) return;
  in_flight_ = true;
  writing_.clear();
  written_ = 0;
  std::swap(writing_, waiting_);
  write_some(owner);
}

void socket_writer::stop() {
  stopped_ = true;
  stall_timer_.cancel();
}

void socket_writer::watch(const std::shared_ptr<void>& owner) {
  stall_timer_.expires_after(stall_limit_);
  stall_timer_.async_wait([this, owner](const boost::system::error_code& reason) {
    const bool due = stall_timer_.expiry() <= boost::asio::steady_timer::clock_type::now();
    if (!reason && !stopped_ && in_flight_ && due) handlers_.on_failed();
  });
}

void socket_writer::write_some(const std::shared_ptr<void>& owner) {
  watch(owner);
  const boost::asio::const_buffer rest(writing_.data() + written_, writing_.size() - written_);
  stream_.write_some(rest, [this, owner](const boost::system::error_code& reason, std::size_t bytes) {
    if (stopped_) return;
    if (reason) return handlers_.on_failed();
    written_ += bytes;
    if (written_ == writing_.size()) {
      writing_.clear();
      written_ = 0;
      std::swap(writing_, waiting_);
    }
    if (!writing_.empty()) return write_some(owner);
    in_flight_ = false;
    stall_timer_.cancel();
    // A connection may idle for long; what a burst needed is given back.
    if (writing_.capacity() > limits::kReadChunkBytes) writing_ = {};
    if (waiting_.capacity() > limits::kReadChunkBytes) waiting_ = {};
    handlers_.on_drained();
  });
}

}  // namespace tandem::net

#include "net/websocket_session.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/endpoints.hpp"
#include "net/generation.hpp"
#include "net/subprotocol.hpp"

namespace tandem::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using io_error = boost::system::error_code;

class websocket_session;

// One request of the socket. Owned by the session, under the client's id.
class socket_call final : public generation_listener {
 public:
  socket_call(websocket_session& session, std::string id_json) : session_(session), id_json_(std::move(id_json)) {}
  void start(std::shared_ptr<generation> work) {
    work_ = std::move(work);
    work_->start(*this);
  }
  void cancel() { work_->cancel(); }
  void end() { work_->end(); }

 private:
  void on_begin(std::string bytes) override;
  void on_bytes(std::string bytes) override;
  void on_finish(std::string bytes) override;
  void on_broken(std::string bytes) override;
  void on_whole(http_response response) override;

  websocket_session& session_;
  std::string id_json_;
  std::shared_ptr<generation> work_;
};

class websocket_session final : public connection, public std::enable_shared_from_this<websocket_session> {
 public:
  websocket_session(io_lane& lane, asio::ip::tcp::socket socket)
      : lane_(lane), socket_(std::move(socket)), membership_(lane, this) {
    lane_.engine->count_websocket(+1);
  }
  ~websocket_session() override {
    cancel_all();
    lane_.engine->count_websocket(-1);
  }

  void start(const http_request& upgrade);
  void finish() override;
  void abort() override;

  // For socket_call.
  void send_lines(const std::string& lines);
  void send_frame(std::string frame);
  void retire(const std::string& id_json);

 private:
  void set_options();
  void set_times(std::chrono::milliseconds handshake);
  void read();
  void on_message();
  void on_request(socket_frame frame);
  void write_next();
  void close(websocket::close_code code, std::string reason);
  void close_when_quiet();
  void cancel_all();

  io_lane& lane_;
  // Deflate is off: it would cost memory per idle socket.
  websocket::stream<beast::tcp_stream, false> socket_;
  lane_membership membership_;
  beast::http::request<beast::http::empty_body> upgrade_;
  beast::flat_buffer buffer_;
  std::map<std::string, std::shared_ptr<socket_call>> calls_;
  std::deque<std::string> outbox_;  // front() is in flight while writing_
  std::size_t outbox_bytes_ = 0;
  bool writing_ = false;
  bool open_ = false;
  bool closing_ = false;       // nothing new goes out: we or the peer want to close
  bool close_wanted_ = false;  // by us
  bool finishing_ = false;
  websocket::close_reason close_reason_;
};

// --- calls -----------------------------------------------------------------------------------------------------

std::string with_id(const std::string& id_json, const std::string& error_body) {
  return "{\"id\":" + (id_json.empty() ? "null" : id_json) + "," + error_body.substr(1);
}

void socket_call::on_begin(std::string bytes) {
  session_.send_lines(bytes);
}
void socket_call::on_bytes(std::string bytes) {
  session_.send_lines(bytes);
}
void socket_call::on_finish(std::string bytes) {
  session_.send_lines(bytes);
  session_.retire(id_json_);
}
void socket_call::on_broken(std::string bytes) {
  on_finish(std::move(bytes));
}
void socket_call::on_whole(http_response response) {
  session_.send_frame(with_id(id_json_, response.body));
  session_.retire(id_json_);
}

// --- opening ---------------------------------------------------------------------------------------------------

void websocket_session::set_times(std::chrono::milliseconds handshake) {
  websocket::stream_base::timeout times{};
  times.handshake_timeout = handshake;
  times.idle_timeout = lane_.edge.options.timeouts.idle;
  times.keep_alive_pings = true;  // a live peer answers and stays, a dead one is cut
  socket_.set_option(times);
}

void websocket_session::set_options() {
  set_times(lane_.edge.options.timeouts.header);
  socket_.read_message_max(limits::kMaxWebSocketMessageBytes);
  socket_.text(true);
  // Beast reports the peer's close only after the connection has ended; its requests must not wait for that.
  socket_.control_callback([this](websocket::frame_type kind, beast::string_view) {
    if (kind != websocket::frame_type::close) return;
    closing_ = true;
    cancel_all();
  });
  beast::get_lowest_layer(socket_).expires_never();
}

void websocket_session::start(const http_request& upgrade) {
  membership_.enter(weak_from_this());
  set_options();
  upgrade_.version(upgrade.http_1_1 ? 11 : 10);
  upgrade_.method(beast::http::verb::get);
  upgrade_.target(upgrade.path);
  for (const auto& [name, value] : upgrade.headers) upgrade_.insert(name, value);
  if (offers_subprotocol(upgrade.header("Sec-WebSocket-Protocol"))) {
    socket_.set_option(websocket::stream_base::decorator([](websocket::response_type& answer) {
      answer.set(beast::http::field::sec_websocket_protocol,
                 beast::string_view(kSubprotocol.data(), kSubprotocol.size()));
    }));
  }
  socket_.async_accept(upgrade_, [self = shared_from_this()](const io_error& reason) {
    if (reason) return;  // the peer got a 400 or 426 from Beast, or is gone
    self->open_ = true;
    self->set_times(limits::kLingerTimeout);  // from here on it bounds the closing handshake
    self->read();
    self->close_when_quiet();
  });
}

// --- reading ---------------------------------------------------------------------------------------------------

void websocket_session::read() {
  socket_.async_read(buffer_, [self = shared_from_this()](const io_error& reason, std::size_t) {
    // Beast has answered protocol errors with 1002, 1007 or 1009 itself.
    if (reason) return self->abort();
    self->on_message();
    self->read();
  });
}

void websocket_session::on_message() {
  if (closing_) return buffer_.consume(buffer_.size());
  if (socket_.got_binary()) return close(websocket::close_code::unknown_data, "Send text frames.");
  const auto bytes = buffer_.data();
  const std::string text(static_cast<const char*>(bytes.data()), bytes.size());
  buffer_.consume(buffer_.size());
  auto frame = parse_frame(text, lane_.facts);
  if (!frame) return send_frame(with_id({}, error_json(frame.error())));
  if (!frame->cancel) return on_request(std::move(*frame));
  const auto found = calls_.find(frame->id_json);
  if (found == calls_.end()) return;  // it ended meanwhile
  found->second->end();
}

void websocket_session::on_request(socket_frame frame) {
  const auto refuse = [&](const error& reason) {
    lane_.engine->count_rejected("invalid");
    send_frame(with_id(frame.id_json, error_json(reason)));
  };
  if (calls_.contains(frame.id_json)) {
    return refuse(error{error_code::invalid_argument, "A request with this id is running on this socket.", "id"});
  }
  if (calls_.size() >= limits::kMaxRequestsPerSocket) {
    return refuse(error{error_code::overloaded, "Too many requests are running on this socket; wait for some.", {}});
  }
  if (finishing_) return refuse(error{error_code::unavailable, "The server is shutting down; use another one.", {}});
  if (!frame.request) return refuse(frame.request.error());
  const std::string public_id = fresh_id("ws-");
  auto answer = make_frame_answer(*frame.request, {public_id, unix_seconds(), texts_of(lane_.engine)}, frame.id_json);
  auto work = std::make_shared<generation>(lane_, std::move(*frame.request), std::move(answer), public_id);
  const auto call = std::make_shared<socket_call>(*this, frame.id_json);
  calls_.emplace(frame.id_json, call);
  call->start(std::move(work));
}

// The call may be on the stack: destroyed behind this turn.
void websocket_session::retire(const std::string& id_json) {
  const auto found = calls_.find(id_json);
  if (found == calls_.end()) return;
  asio::post(socket_.get_executor(), [self = shared_from_this(), call = std::move(found->second)] {});
  calls_.erase(found);
  close_when_quiet();
}

void websocket_session::cancel_all() {
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    call->cancel();
    asio::post(lane_.context, [keep = call] {});
  }
}

// --- writing: one frame in flight, the close frame behind all others --------------------------------------------

void websocket_session::send_lines(const std::string& lines) {
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    TANDEM_ASSERT(end != std::string::npos);
    send_frame(lines.substr(at, end - at));
    at = end + 1;
  }
}

void websocket_session::send_frame(std::string frame) {
  if (closing_ || !open_) return;
  outbox_bytes_ += frame.size();
  if (outbox_bytes_ > lane_.edge.options.max_outbox_bytes) return abort();  // the client does not read
  outbox_.push_back(std::move(frame));
  write_next();
}

void websocket_session::write_next() {
  if (writing_ || !open_) return;
  if (!outbox_.empty()) {
    writing_ = true;
    socket_.async_write(asio::buffer(outbox_.front()),
                        [self = shared_from_this()](const io_error& reason, std::size_t) {
                          self->writing_ = false;
                          if (reason) return self->abort();
                          self->outbox_bytes_ -= self->outbox_.front().size();
                          self->outbox_.pop_front();
                          self->write_next();
                        });
    return;
  }
  if (!close_wanted_) return close_when_quiet();
  writing_ = true;  // nothing goes behind a close frame
  socket_.async_close(close_reason_, [self = shared_from_this()](const io_error&) { self->abort(); });
}

void websocket_session::close(websocket::close_code code, std::string reason) {
  if (closing_) return;
  closing_ = true;
  close_wanted_ = true;
  close_reason_ = {code, reason};
  cancel_all();
  write_next();
}

void websocket_session::close_when_quiet() {
  if (!finishing_ || closing_ || !open_ || !calls_.empty() || !outbox_.empty()) return;
  close(websocket::close_code::going_away, "The server is shutting down.");
}

void websocket_session::finish() {
  finishing_ = true;
  close_when_quiet();
}

void websocket_session::abort() {
  const auto self = shared_from_this();
  open_ = false;
  closing_ = true;
  cancel_all();
  beast::get_lowest_layer(socket_).close();
}

}  // namespace

void start_websocket(io_lane& lane, asio::ip::tcp::socket socket, const http_request& upgrade) {
  std::make_shared<websocket_session>(lane, std::move(socket))->start(upgrade);
}

}  // namespace tandem::net

#include "net/websocket/websocket_session.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "config/edge_limits.hpp"
#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/socket_writer.hpp"
#include "net/websocket/frame_reader.hpp"
#include "net/websocket/frame_writer.hpp"
#include "net/websocket/handshake.hpp"

namespace tandem::net {
namespace {

namespace asio = boost::asio;
using io_error = boost::system::error_code;

/// Reads into a buffer of its own, small because most sockets are idle; one write in flight (socket_writer).
class websocket_session final : public connection,
                                public socket_channel,
                                public std::enable_shared_from_this<websocket_session> {
 public:
  websocket_session(io_lane& lane, std::unique_ptr<byte_stream> stream, const socket_terms& terms)
      : lane_(lane),
        stream_(std::move(stream)),
        membership_(lane, this),
        timer_(stream_->get_executor()),
        writer_(*stream_, lane.edge.options.timeouts.write, {[this] { on_drained(); }, [this] { cut(true); }}),
        reader_(limits::kMaxWebSocketMessageBytes, terms.deflate.has_value()),
        deflate_(terms.deflate) {
    lane_.engine->count_websocket(+1);
  }
  ~websocket_session() override {
    if (protocol_) protocol_->on_closed(true);
    lane_.engine->count_websocket(-1);
  }

  void start(const socket_terms& terms, protocol_maker make_protocol, socket_key key);
  void finish() override;
  void abort() override { cut(false); }
  void send(std::string_view text) override;
  std::size_t unsent() const override { return writer_.waiting(); }
  void on_quiet() override { close_when_quiet(); }

 private:
  // open: frames go both ways. closing: our close is out, the peer's is awaited. ending: both are, or the peer broke
  // the protocol; what still comes is dropped, because closing at once could lose the peer our close frame.
  enum class phase { open, closing, ending, closed };

  void read();
  void take(std::string_view input);
  void on_event(frame_reader::event happened);
  void on_message(frame_reader::event kind);
  void on_drained();
  void watch();
  void on_time();
  void write(const std::string& bytes);
  void say_close(close_code code, std::string_view reason, phase next);
  void close_when_quiet();
  void lose_protocol(bool lost);
  void end_sending();
  void cut(bool lost);

  io_lane& lane_;
  std::unique_ptr<byte_stream> stream_;
  lane_membership membership_;
  asio::steady_timer timer_;
  socket_writer writer_;
  frame_reader reader_;
  std::optional<deflate_terms> deflate_;
  std::unique_ptr<socket_protocol> protocol_;  // null once the socket is closing
  std::array<char, limits::kSocketReadBytes> chunk_;
  phase phase_ = phase::open;
  bool finishing_ = false;
  bool heard_ = false;   // anything, since the timer was set
  bool pinged_ = false;  // and nothing was heard since
};

void websocket_session::start(const socket_terms& terms, protocol_maker make_protocol, socket_key key) {
  membership_.enter(weak_from_this());
  protocol_ = make_protocol(lane_, *this, key);
  writer_.send(switching_head(terms), shared_from_this());
  finishing_ = lane_.stopping;
  watch();
  read();
  close_when_quiet();
}

// --- reading ---------------------------------------------------------------------------------------------------

void websocket_session::read() {
  if (phase_ == phase::closed) return;
  stream_->read_some(asio::buffer(chunk_), [self = shared_from_this()](const io_error& reason, std::size_t bytes) {
    if (self->phase_ == phase::closed) return;
    if (reason) return self->cut(true);
    self->heard_ = true;
    self->pinged_ = false;
    self->take({self->chunk_.data(), bytes});
    self->read();
  });
}

void websocket_session::take(std::string_view input) {
  while (!input.empty() && (phase_ == phase::open || phase_ == phase::closing)) {
    const auto happened = reader_.feed(input);
    if (happened == frame_reader::event::more) return;
    on_event(happened);
  }
}

void websocket_session::on_event(frame_reader::event happened) {
  using event = frame_reader::event;
  switch (happened) {
    case event::text:
    case event::binary:
      return on_message(happened);
    case event::ping:
      if (phase_ == phase::open) write(frame_bytes(opcode::pong, reader_.take()));
      return;
    case event::close:
      if (phase_ == phase::closing) {
        phase_ = phase::ending;
        return end_sending();
      }
      return say_close(reader_.code(), {}, phase::ending);
    case event::failed:
      return say_close(reader_.code(), {}, phase::ending);
    case event::pong:
    case event::more:
      return;
  }
}

void websocket_session::on_message(frame_reader::event kind) {
  const std::string message = reader_.take();
  if (phase_ != phase::open) return;
  if (kind == frame_reader::event::binary) {
    return say_close(close_code::unknown_data, "Send text frames.", phase::closing);
  }
  protocol_->on_text(message);
}

// --- writing ---------------------------------------------------------------------------------------------------

void websocket_session::send(std::string_view text) {
  if (phase_ != phase::open) return;
  const bool compressed = deflate_ && text.size() >= limits::kMinDeflateBytes;
  write(compressed ? frame_bytes(opcode::text, lane_.deflater.deflate(text, deflate_->window_bits), true)
                   : frame_bytes(opcode::text, text));
}

void websocket_session::write(const std::string& bytes) {
  // A large message is no fault of a client that had read what was before it.
  const bool lags = writer_.waiting() > lane_.edge.options.max_outbox_bytes;
  writer_.send(bytes, shared_from_this());
  if (lags) cut(false);
}

void websocket_session::on_drained() {
  if (phase_ == phase::ending) return end_sending();
  if (phase_ == phase::open) protocol_->on_drained();
}

// --- times -----------------------------------------------------------------------------------------------------

// A live peer answers pings and stays, a dead one is cut off after the idle time.
void websocket_session::watch() {
  heard_ = false;
  timer_.expires_after(phase_ == phase::open ? lane_.edge.options.timeouts.idle / 2
                                             : std::chrono::milliseconds(limits::kLingerTimeout));
  timer_.async_wait([weak = weak_from_this()](const io_error& reason) {
    const auto self = weak.lock();
    if (reason || !self || self->phase_ == phase::closed) return;
    // A wait that was already due when the timer was set anew is none.
    if (self->timer_.expiry() <= asio::steady_timer::clock_type::now()) self->on_time();
  });
}

void websocket_session::on_time() {
  if (phase_ != phase::open || (pinged_ && !heard_)) return cut(phase_ == phase::open);
  if (!heard_) {
    pinged_ = true;
    write(frame_bytes(opcode::ping, {}));
  }
  if (phase_ == phase::open) watch();
}

// --- ends ------------------------------------------------------------------------------------------------------

// The frame goes behind all others.
void websocket_session::say_close(close_code code, std::string_view reason, phase next) {
  if (phase_ != phase::open && phase_ != phase::closing) return;
  const bool said = phase_ == phase::closing;
  phase_ = next;
  lose_protocol(false);
  watch();
  if (!said) writer_.send(close_frame(code, reason), shared_from_this());
  if (writer_.idle()) on_drained();
}

void websocket_session::close_when_quiet() {
  if (!finishing_ || phase_ != phase::open || !protocol_->quiet()) return;
  say_close(close_code::going_away, "The server is shutting down.", phase::closing);
}

void websocket_session::finish() {
  finishing_ = true;
  if (protocol_) protocol_->on_finish();
  close_when_quiet();
}

// It may be on the stack: destroyed behind this turn.
void websocket_session::lose_protocol(bool lost) {
  if (!protocol_) return;
  protocol_->on_closed(lost);
  asio::post(lane_.context, [gone = std::shared_ptr<socket_protocol>(std::move(protocol_))] {});
}

void websocket_session::end_sending() {
  if (!writer_.idle()) return;
  stream_->end_sending();
}

void websocket_session::cut(bool lost) {
  if (phase_ == phase::closed) return;
  const auto self = shared_from_this();
  phase_ = phase::closed;
  lose_protocol(lost);
  timer_.cancel();
  writer_.stop();
  stream_->close();
}

}  // namespace

void start_websocket(io_lane& lane, std::unique_ptr<byte_stream> stream, const http_request& upgrade,
                     protocol_maker make_protocol) {
  const socket_terms terms = agree(upgrade);
  std::make_shared<websocket_session>(lane, std::move(stream), terms)
      ->start(terms, make_protocol, lane.edge.keys.find(upgrade));
}

}  // namespace tandem::net

#include "net/http_session.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/openai_answers.hpp"
#include "net/router.hpp"
#include "net/websocket/handshake.hpp"

namespace tandem::net {
namespace asio = boost::asio;
using io_error = boost::system::error_code;

http_session::http_session(io_lane& lane, std::unique_ptr<byte_stream> stream)
    : lane_(lane),
      stream_(std::move(stream)),
      membership_(lane, this),
      phase_timer_(stream_->get_executor()),
      ping_timer_(stream_->get_executor()),
      writer_(*stream_, lane.edge.options.timeouts.write, {[this] { on_drained(); }, [this] { cut(); }}),
      parser_(lane.edge.options.max_body_bytes),
      chunk_(limits::kReadChunkBytes) {}

http_session::~http_session() {
  release_body();
  if (call_) call_->abandon();
}

void http_session::start() {
  membership_.enter(weak_from_this());
  enter(phase::handshake);
  stream_->handshake([self = shared_from_this()](const io_error& reason) {
    if (self->phase_ == phase::closed) return;
    if (reason) return self->cut();
    self->begin();
  });
}

void http_session::begin() {
  enter(phase::idle);
  read();
}

// --- reading ---------------------------------------------------------------------------------------------------

void http_session::read() {
  const bool full = (phase_ == phase::answering && input_.size() >= limits::kMaxReadAheadBytes) || reader_lags();
  if (reading_ || full || phase_ == phase::closed || !stream_->is_open()) return;
  reading_ = true;
  stream_->read_some(asio::buffer(chunk_), [self = shared_from_this()](const io_error& reason, std::size_t bytes) {
    self->on_read(reason, bytes);
  });
}

void http_session::on_read(const io_error& reason, std::size_t bytes) {
  reading_ = false;
  if (phase_ == phase::closed) return;
  if (reason) return on_peer_gone();
  if (phase_ != phase::linger && !closing_) input_.append(chunk_.data(), bytes);
  progress();
  read();
}

bool http_session::reader_lags() const {
  return writer_.waiting() > lane_.edge.options.max_outbox_bytes;
}

// A client that pipelines and does not read gets no further: its answers would pile up here.
void http_session::progress() {
  bool moved = true;
  while (moved && !input_.empty() && !closing_ && phase_ < phase::answering && !reader_lags()) moved = take_bytes();
}

// Feeds the parser once. False: it needs more than the buffer holds, or the connection is closing.
bool http_session::take_bytes() {
  if (phase_ == phase::idle) enter(phase::header);
  const std::size_t used = parser_.feed(input_);
  input_.erase(0, used);
  if (!hold_body()) return false;
  switch (parser_.current()) {
    case http_parser::state::failed:
      refuse_and_close(
          error_response(parser_.status(), parser_.message(), parser_.status() == 413 ? "too_large" : "invalid_http"));
      return false;
    case http_parser::state::complete:
      if (head_seen_ || !refuse_head()) dispatch();
      return true;
    case http_parser::state::body:
      if (!head_seen_ && refuse_head()) return false;
      if (!head_seen_) enter(phase::body);
      head_seen_ = true;
      return used > 0;
    case http_parser::state::head:
      break;
  }
  return false;
}

// False: too many large bodies are being received at once, and this one is refused.
bool http_session::hold_body() {
  const std::size_t before = std::exchange(body_bytes_, parser_.body_bytes());
  const std::size_t all = (lane_.edge.body_bytes += body_bytes_ - before);
  if (all <= lane_.edge.options.max_unfinished_body_bytes || body_bytes_ <= limits::kSmallBodyBytes) return true;
  refuse_and_close(error_response(
      error{error_code::unavailable, "The server is receiving too many large requests at once; try again later.", {}}));
  return false;
}

void http_session::release_body() {
  lane_.edge.body_bytes -= std::exchange(body_bytes_, 0);
}

// A client that waits for "100 Continue" learns at once when its body is not wanted.
bool http_session::refuse_head() {
  const http_request head = parser_.head();
  const std::string_view expectation = head.header("Expect");
  if (expectation.empty()) return false;
  if (!head.expects_continue) {
    refuse_and_close(error_response(417, "Only 'Expect: 100-continue' is understood.", "expectation_failed"));
    return true;
  }
  if (auto refused = refusal(lane_, head)) {
    refuse_and_close(std::move(*refused));
    return true;
  }
  if (parser_.current() != http_parser::state::complete) writer_.send(kContinue, shared_from_this());
  return false;
}

void http_session::dispatch() {
  http_request request = parser_.take();
  release_body();  // read at once from here on
  head_seen_ = false;
  head_only_ = request.method == "HEAD";
  keep_alive_ = request.keep_alive;
  chunked_ = request.http_1_1;
  page_fields_ = cross_origin_fields(lane_.edge.options.cross_origin, request.header("Origin"));
  enter(phase::answering);
  if (auto refused = refusal(lane_, request)) return send(std::move(*refused));
  if (auto refused = take_lease(request)) return send(std::move(*refused));
  if (request.upgrades_to_websocket && protocol_at(request.path) != nullptr) return upgrade(std::move(request));
  auto call = answer_request(lane_, std::move(request), weak_from_this());
  if (phase_ == phase::answering) {
    call_ = std::move(call);
  } else if (call) {
    call->abandon();
  }
}

std::optional<http_response> http_session::take_lease(const http_request& request) {
  if (!is_work(request)) return std::nullopt;
  api_keys& keys = lane_.edge.keys;
  auto lease = keys.lease(keys.find(request));
  if (!lease) return error_response(keys.too_many());
  lease_ = std::move(*lease);
  return std::nullopt;
}

void http_session::upgrade(http_request request) {
  if (auto refused = handshake_refusal(request)) return send(std::move(*refused));
  if (reading_ || !input_.empty() || !writer_.idle()) {
    return refuse_and_close(
        error_response(400, "Nothing may be sent around an upgrade; wait for its answer.", "invalid_upgrade"));
  }
  writer_.stop();
  phase_ = phase::closed;
  phase_timer_.cancel();
  start_websocket(lane_, std::move(stream_), request, protocol_at(request.path));
}

// --- answering -------------------------------------------------------------------------------------------------

void http_session::send(http_response response) {
  if (phase_ != phase::answering || streaming_) return;
  lease_ = {};  // before the client can know that it is free
  const bool close = !keep_alive_ || lane_.stopping;
  response.headers.insert(response.headers.end(), page_fields_.begin(), page_fields_.end());
  std::string bytes = response_head(response, {body_framing::kind::length, response.body.size()}, close);
  if (!head_only_ && response.status != 304) bytes += response.body;  // a 304 only tells the length
  writer_.send(bytes, shared_from_this());
  end_exchange(close);
}

void http_session::begin_stream(http_response head, std::string_view ping) {
  if (phase_ != phase::answering) return;
  streaming_ = true;
  ping_ = ping;
  head.headers.insert(head.headers.end(), page_fields_.begin(), page_fields_.end());
  if (!chunked_) keep_alive_ = false;  // HTTP/1.0 knows the end by the connection's end only
  const auto framing = chunked_ ? body_framing::kind::chunked : body_framing::kind::until_close;
  writer_.send(response_head(head, {framing, 0}, !keep_alive_), shared_from_this());
  if (!ping_.empty()) wait_to_ping();
}

void http_session::write(std::string_view bytes) {
  if (phase_ != phase::answering || !streaming_ || bytes.empty()) return;
  wrote_since_ping_ = true;
  const bool lags = reader_lags();  // a large piece is no fault of a reader that had taken what was before it
  writer_.send(chunked_ ? chunk_of(bytes) : std::string(bytes), shared_from_this());
  if (lags) cut();  // a reader too slow must not cost memory
}

void http_session::end_stream(bool broken) {
  if (phase_ != phase::answering || !streaming_) return;
  lease_ = {};
  if (chunked_) writer_.send(kLastChunk, shared_from_this());
  end_exchange(broken || !keep_alive_ || lane_.stopping);
}

// Called from inside the call that answered: that one is destroyed behind this turn.
void http_session::end_exchange(bool close) {
  streaming_ = false;
  ping_timer_.cancel();
  closing_ = closing_ || close;
  enter(phase::idle);
  asio::post(stream_->get_executor(), [self = shared_from_this(), call = std::move(call_)] {
    if (self->phase_ == phase::closed) return;
    if (self->closing_ && self->writer_.idle()) self->linger();
    self->progress();
    self->read();
  });
  call_.reset();
}

void http_session::refuse_and_close(http_response response) {
  if (phase_ == phase::closed) return;
  if (phase_ == phase::answering) enter(phase::idle);
  closing_ = true;
  input_.clear();
  parser_ = http_parser(lane_.edge.options.max_body_bytes);  // lets go of the body
  release_body();
  writer_.send(response_head(response, {body_framing::kind::length, response.body.size()}, true) + response.body,
               shared_from_this());
}

void http_session::wait_to_ping() {
  wrote_since_ping_ = false;
  ping_timer_.expires_after(lane_.edge.options.timeouts.stream_ping);
  ping_timer_.async_wait([weak = weak_from_this()](const io_error& reason) {
    const auto self = weak.lock();
    if (reason || !self || !self->streaming_) return;
    if (!self->wrote_since_ping_) self->write(self->ping_);
    if (self->streaming_) self->wait_to_ping();
  });
}

// --- times and ends --------------------------------------------------------------------------------------------

void http_session::enter(phase next) {
  phase_ = next;
  const server_timeouts& timeouts = lane_.edge.options.timeouts;
  std::chrono::milliseconds bound{0};
  switch (next) {
    case phase::handshake:
      bound = timeouts.handshake;
      break;
    case phase::idle:
      bound = timeouts.idle;
      break;
    case phase::header:
      bound = timeouts.header;
      break;
    case phase::body:
      bound = timeouts.body;
      break;
    case phase::linger:
      bound = limits::kLingerTimeout;
      break;
    case phase::answering:
    case phase::closed:
      phase_timer_.cancel();
      return;
  }
  phase_timer_.expires_after(bound);
  phase_timer_.async_wait([weak = weak_from_this()](const io_error& reason) {
    const auto self = weak.lock();
    if (reason || !self) return;
    // A wait that was already due when the timer was set anew is none.
    if (self->phase_timer_.expiry() <= asio::steady_timer::clock_type::now()) self->on_late();
  });
}

void http_session::on_late() {
  if (phase_ == phase::answering || phase_ == phase::closed) return;
  if ((phase_ == phase::header || phase_ == phase::body) && !closing_) {
    return refuse_and_close(
        error_response(408, "The request did not arrive in time; send it faster.", "request_timeout"));
  }
  if (writer_.idle() || phase_ == phase::linger) cut();
}

void http_session::on_peer_gone() {
  if (phase_ == phase::answering || phase_ == phase::linger || writer_.idle()) return cut();
  closing_ = true;
}

void http_session::on_drained() {
  if (closing_ && phase_ != phase::answering) return linger();
  if (phase_ == phase::idle) enter(phase::idle);  // the idle time counts from here
  progress();
  read();
}

// The client may still be sending; closing now would reset the connection and lose it the answer.
void http_session::linger() {
  if (phase_ == phase::linger || phase_ == phase::closed) return;
  stream_->end_sending();
  enter(phase::linger);
  read();
}

void http_session::finish() {
  if (phase_ == phase::answering) return;  // send() and end_stream() see lane_.stopping
  closing_ = true;
  if (writer_.idle()) cut();
}

void http_session::cut() {
  if (phase_ == phase::closed) return;
  const auto self = shared_from_this();
  phase_ = phase::closed;
  streaming_ = false;
  lease_ = {};
  phase_timer_.cancel();
  ping_timer_.cancel();
  writer_.stop();
  stream_->close();
  if (!call_) return;
  call_->abandon();
  // Cut from inside the call's own write: it is destroyed behind this turn.
  asio::post(stream_->get_executor(), [call = std::exchange(call_, nullptr)] {});
}

}  // namespace tandem::net

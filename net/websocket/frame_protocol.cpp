// GET /ws: each text frame to the server is a request or a cancellation, each one back a piece of an answer.

#include <boost/asio/post.hpp>
#include <map>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/endpoints.hpp"
#include "net/generation.hpp"
#include "net/websocket/socket_protocol.hpp"

namespace tandem::net {
namespace {

class frame_protocol;

// One request of the socket. Owned by the protocol, under the client's id.
class socket_call final : public generation_listener {
 public:
  socket_call(frame_protocol& protocol, std::string id_json, key_lease lease)
      : protocol_(protocol), id_json_(std::move(id_json)), lease_(std::move(lease)) {}
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

  frame_protocol& protocol_;
  std::string id_json_;
  key_lease lease_;
  std::shared_ptr<generation> work_;
};

class frame_protocol final : public socket_protocol {
 public:
  frame_protocol(io_lane& lane, socket_channel& channel, socket_key key) : lane_(lane), channel_(channel), key_(key) {}

  void on_text(const std::string& text) override;
  void on_drained() override {}
  void on_finish() override { finishing_ = true; }
  bool quiet() const override { return calls_.empty(); }
  void on_closed(bool lost) override;

  // For socket_call.
  void send_lines(const std::string& lines);
  void send_frame(const std::string& frame);
  void retire(const std::string& id_json);

 private:
  void on_request(socket_frame frame);

  io_lane& lane_;
  socket_channel& channel_;
  socket_key key_;
  std::map<std::string, std::shared_ptr<socket_call>> calls_;
  bool finishing_ = false;
  bool closed_ = false;
};

// --- calls -----------------------------------------------------------------------------------------------------

std::string with_id(const std::string& id_json, const std::string& error_body) {
  return "{\"id\":" + (id_json.empty() ? "null" : id_json) + "," + error_body.substr(1);
}

void socket_call::on_begin(std::string bytes) {
  protocol_.send_lines(bytes);
}
void socket_call::on_bytes(std::string bytes) {
  protocol_.send_lines(bytes);
}
void socket_call::on_finish(std::string bytes) {
  protocol_.send_lines(bytes);
  protocol_.retire(id_json_);
}
void socket_call::on_broken(std::string bytes) {
  on_finish(std::move(bytes));
}
void socket_call::on_whole(http_response response) {
  protocol_.send_frame(with_id(id_json_, response.body));
  protocol_.retire(id_json_);
}

// --- requests --------------------------------------------------------------------------------------------------

void frame_protocol::on_text(const std::string& text) {
  auto frame = parse_frame(text, lane_.facts);
  if (!frame) return send_frame(with_id({}, error_json(frame.error())));
  if (!frame->cancel) return on_request(std::move(*frame));
  const auto found = calls_.find(frame->id_json);
  if (found == calls_.end()) return;  // it ended meanwhile
  found->second->end();
}

void frame_protocol::on_request(socket_frame frame) {
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
  auto lease = lane_.edge.keys.lease(key_);
  if (!lease) return refuse(lane_.edge.keys.too_many());
  const std::string public_id = fresh_id("ws-");
  auto answer = make_frame_answer(*frame.request, {public_id, unix_seconds(), texts_of(lane_.engine)}, frame.id_json);
  auto work = std::make_shared<generation>(lane_, std::move(*frame.request), std::move(answer), public_id);
  const auto call = std::make_shared<socket_call>(*this, frame.id_json, std::move(*lease));
  calls_.emplace(frame.id_json, call);
  call->start(std::move(work));
}

// The call may be on the stack: destroyed behind this turn.
void frame_protocol::retire(const std::string& id_json) {
  const auto found = calls_.find(id_json);
  if (found == calls_.end()) return;
  boost::asio::post(lane_.context, [call = std::move(found->second)] {});
  calls_.erase(found);
  if (calls_.empty() && !closed_) channel_.on_quiet();
}

void frame_protocol::on_closed(bool) {
  closed_ = true;
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    call->cancel();
    boost::asio::post(lane_.context, [keep = call] {});
  }
}

// --- frames ----------------------------------------------------------------------------------------------------

void frame_protocol::send_lines(const std::string& lines) {
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    TANDEM_ASSERT(end != std::string::npos);
    send_frame(lines.substr(at, end - at));
    at = end + 1;
  }
}

void frame_protocol::send_frame(const std::string& frame) {
  if (!closed_) channel_.send(frame);
}

}  // namespace

std::unique_ptr<socket_protocol> make_frame_protocol(io_lane& lane, socket_channel& channel, socket_key key) {
  return std::make_unique<frame_protocol>(lane, channel, key);
}

}  // namespace tandem::net

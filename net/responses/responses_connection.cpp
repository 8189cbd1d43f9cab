#include "net/responses/responses_connection.hpp"

#include <algorithm>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/endpoints.hpp"
#include "net/responses/response_store.hpp"
#include "net/responses/responses_protocol.hpp"

namespace tandem::net {

responses_connection::responses_connection(io_lane& lane, socket_channel& channel, socket_key key)
    : lane_(lane),
      channel_(channel),
      key_(key),
      feed_(
          lane, channel,
          {[this](const std::string& id) { on_all_sent(id); }, [this](const std::string& id) { on_events_lost(id); }}) {
}

void responses_connection::on_text(const std::string& text) {
  client_event event = parse_client_event(text, lane_.facts);
  if (event.problem && event.kind != client_event_kind::steer) return refuse(*event.problem, event.stream_id);
  switch (event.kind) {
    case client_event_kind::unknown:
      return;
    case client_event_kind::create:
      return create(std::move(event.create), text.size());
    case client_event_kind::steer:
      return steer(std::move(event));
    case client_event_kind::cancel:
      return cancel(event);
    case client_event_kind::pause:
      return set_paused(event, true);
    case client_event_kind::resume:
      return set_paused(event, false);
    case client_event_kind::resume_from:
      return resume_from(event);
  }
}

void responses_connection::refuse(const error& reason, const std::string& stream_id) {
  lane_.engine->count_rejected("invalid");
  send(error_event(reason, stream_id));
}

void responses_connection::send(const std::string& event) {
  if (!closed_) channel_.send(event);
}

void responses_connection::refuse_full(const std::string& stream_id) {
  refuse({error_code::overloaded, "Too many responses are under way on this socket; wait for some.", {}}, stream_id);
}

bool responses_connection::is_full() const {
  return runs_.size() + lanes_.waiting() + feed_.size() >= limits::kMaxRequestsPerSocket;
}

void responses_connection::create(response_request request, std::size_t bytes) {
  const std::string stream_id = request.stream_id;
  if (finishing_) {
    return refuse({error_code::unavailable, "The server is shutting down; use another one.", {}}, stream_id);
  }
  if (is_full()) return refuse_full(stream_id);
  if (lanes_.may_run(request)) return start_from_client(std::move(request));
  if (lanes_.wait(request, bytes)) return;
  refuse({error_code::overloaded, "Too much input waits on this socket; wait for some responses.", {}}, stream_id);
}

// --- turns -----------------------------------------------------------------------------------------------------

void responses_connection::start_from_client(response_request request) {
  pending_steers_.add_to(request);
  const std::string stream_id = request.stream_id;
  auto conversation = conversation_of(request.previous_id);
  if (!conversation) {
    refuse(conversation.error(), stream_id);
    return start_waiting(stream_id);
  }
  auto lease = lane_.edge.keys.lease(key_);
  if (!lease) {
    refuse(lane_.edge.keys.too_many(), stream_id);
    return start_waiting(stream_id);
  }
  active_run entry;
  entry.stream_id = stream_id;
  entry.lease = std::move(*lease);
  start(std::make_shared<const response_request>(std::move(request)), std::move(*conversation), std::move(entry));
}

// What a socket was told last goes on although it is not stored.
result<std::string> responses_connection::conversation_of(const std::string& id) const {
  auto stored = conversation_before(lane_.edge.responses, id);
  if (stored) return stored;
  if (auto unstored = unstored_.conversation_of(id)) return std::move(*unstored);
  return stored;
}

void responses_connection::start(std::shared_ptr<const response_request> request, std::string conversation,
                                 active_run entry) {
  auto run = std::make_shared<response_run>(lane_, std::move(request), std::move(conversation), fresh_id("resp_"));
  entry.run = run;
  lanes_.note_begin(entry.stream_id);
  runs_.emplace(run->record()->id(), std::move(entry));
  TANDEM_ASSERT(run->start(*this));  // a random id is nobody else's
}

void responses_connection::start_waiting(const std::string& stream_id) {
  if (closed_) return;
  if (auto next = lanes_.next(stream_id)) start_from_client(std::move(*next));
}

// --- what runs -------------------------------------------------------------------------------------------------

void responses_connection::on_begun(response_run& run) {
  const std::string& id = run.record()->id();
  active_run& entry = runs_.at(id);
  entry.taken.clear();
  std::string before = entry.steered_id;  // events of a lane come in the order of its responses
  if (!run.request().concurrent) before = std::exchange(last_of_lane_[entry.stream_id], id);
  feed_.follow(run.record(), 0, lane_members(id, entry.stream_id), std::move(before));
  feed_.pump();
}

void responses_connection::on_ended(response_run& run) {
  auto found = runs_.extract(run.record()->id());
  active_run entry = std::move(found.mapped());
  lanes_.note_end(entry.stream_id);
  const std::string stream_id = entry.stream_id;
  if (!run.request().store) unstored_.keep(run.record());
  if (!entry.steers.empty()) {
    succeed(run, std::move(entry));
  } else {
    start_waiting(stream_id);
  }
  feed_.pump();
  tell_when_quiet();
}

// Refused before it began; as an automatic successor it is the steering that failed.
void responses_connection::on_whole(response_run& run, http_response response) {
  auto found = runs_.extract(run.record()->id());
  const active_run entry = std::move(found.mapped());
  lanes_.note_end(entry.stream_id);
  for (const steering& one : entry.taken) {
    send(steer_failed(one.id, entry.steered_id, one.input_json, "successor_creation_failed",
                      "The successor was refused; see the error event of its lane.", 0));
  }
  send(error_event(response, entry.stream_id));
  start_waiting(entry.stream_id);
  tell_when_quiet();
}

void responses_connection::tell_when_quiet() {
  if (!closed_ && quiet()) channel_.on_quiet();
}

void responses_connection::on_all_sent(const std::string& id) {
  std::erase_if(last_of_lane_, [&](const auto& entry) { return entry.second == id; });
  tell_when_quiet();
}

void responses_connection::on_events_lost(const std::string& id) {
  send(
      error_event(error{error_code::overloaded,
                        "Events of response '" + id + "' were not read for too long and are gone; GET it when it ends.",
                        "response_id"},
                  {}));
  tell_when_quiet();
}

void responses_connection::on_closed(bool lost) {
  closed_ = true;
  feed_.close();
  lanes_.clear();
  for (const auto& [id, entry] : std::exchange(runs_, {})) {
    if (lost) {
      entry.run->let_go();
    } else {
      entry.run->cancel();
    }
  }
}

std::unique_ptr<socket_protocol> make_responses_protocol(io_lane& lane, socket_channel& channel, socket_key key) {
  return std::make_unique<responses_connection>(lane, channel, key);
}

}  // namespace tandem::net

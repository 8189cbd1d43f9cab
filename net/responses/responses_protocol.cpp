#include "net/responses/responses_protocol.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "config/edge_limits.hpp"
#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/endpoints.hpp"
#include "net/responses/client_event.hpp"
#include "net/responses/event_feed.hpp"
#include "net/responses/response_run.hpp"
#include "net/responses/response_store.hpp"
#include "net/responses/socket_events.hpp"

namespace tandem::net {
namespace {

/// A response of this socket that is being made.
struct active_run {
  std::shared_ptr<response_run> run;
  std::string stream_id;
  key_lease lease;
  std::vector<steering> steers;  // what its successor starts from
  std::vector<steering> taken;   // what it was itself started from, until it has begun
  std::string steered_id;        // the response that `taken` steered
};

struct waiting_request {
  response_request request;
  std::size_t bytes = 0;  // of its event
};

/// Requests of one `stream_id`. They run one after the other unless they ask otherwise, as OpenAI's do.
struct request_lane {
  std::deque<waiting_request> waiting;
  std::size_t running = 0;
};

class responses_protocol final : public socket_protocol, public response_listener {
 public:
  responses_protocol(io_lane& lane, socket_channel& channel, socket_key key)
      : lane_(lane),
        channel_(channel),
        key_(key),
        feed_(lane, channel,
              {[this](const std::string& id) { on_all_sent(id); },
               [this](const std::string& id) { on_events_lost(id); }}) {}

  void on_text(const std::string& text) override;
  void on_drained() override { feed_.pump(); }
  void on_finish() override { finishing_ = true; }
  bool quiet() const override { return runs_.empty() && waiting_ == 0 && feed_.empty(); }
  void on_closed(bool lost) override;

 private:
  void on_begun(response_run& run) override;
  void on_ended(response_run& run) override;
  void on_whole(response_run& run, http_response response) override;

  void create(response_request request, std::size_t bytes);
  void start(std::shared_ptr<const response_request> request, std::string conversation, active_run entry);
  void start_waiting(const std::string& stream_id);
  void start_from_client(response_request request);
  result<std::string> conversation_of(const std::string& id) const;
  void steer(client_event event);
  void succeed(const response_run& parent, active_run ended);
  void keep_pending(const std::string& parent_id, std::vector<steering> steers);
  void add_pending_steers(response_request& request);
  void cancel(const client_event& event);
  void cancel_lane(const std::string& stream_id);
  void set_paused(const client_event& event, bool paused);
  void resume_from(const client_event& event);
  void keep_unstored(const response_run& run);
  void on_all_sent(const std::string& id);
  void on_events_lost(const std::string& id);
  void refuse(const error& reason, const std::string& stream_id);
  void send(const std::string& event);
  void tell_when_quiet();

  io_lane& lane_;
  socket_channel& channel_;
  socket_key key_;
  event_feed feed_;
  std::map<std::string, active_run> runs_;           // by response id
  std::map<std::string, request_lane> lanes_;        // by stream id; those with work
  std::map<std::string, std::string> last_of_lane_;  // stream id → its last response in the feed
  std::size_t waiting_bytes_ = 0;
  std::size_t waiting_ = 0;                                      // requests in lanes_
  std::map<std::string, std::vector<steering>> pending_steers_;  // by the response that waits for tools' results
  std::deque<std::shared_ptr<response_record>> unstored_;  // the last ones, for previous_response_id on this socket
  std::size_t unstored_bytes_ = 0;
  bool finishing_ = false;
  bool closed_ = false;
};

// --- what the client says --------------------------------------------------------------------------------------

void responses_protocol::on_text(const std::string& text) {
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

void responses_protocol::refuse(const error& reason, const std::string& stream_id) {
  lane_.engine->count_rejected("invalid");
  send(error_event(reason, stream_id));
}

void responses_protocol::send(const std::string& event) {
  if (!closed_) channel_.send(event);
}

void responses_protocol::create(response_request request, std::size_t bytes) {
  if (finishing_) {
    return refuse({error_code::unavailable, "The server is shutting down; use another one.", {}}, request.stream_id);
  }
  if (runs_.size() + waiting_ + feed_.size() >= limits::kMaxRequestsPerSocket) {
    return refuse({error_code::overloaded, "Too many responses are under way on this socket; wait for some.", {}},
                  request.stream_id);
  }
  request_lane& lane = lanes_[request.stream_id];
  if (request.concurrent || (lane.running == 0 && lane.waiting.empty())) return start_from_client(std::move(request));
  if (waiting_bytes_ + bytes > limits::kMaxWebSocketMessageBytes) {
    return refuse({error_code::overloaded, "Too much input waits on this socket; wait for some responses.", {}},
                  request.stream_id);
  }
  ++waiting_;
  waiting_bytes_ += bytes;
  lane.waiting.push_back({std::move(request), bytes});
}

// --- lanes -----------------------------------------------------------------------------------------------------

void responses_protocol::start_from_client(response_request request) {
  add_pending_steers(request);
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
result<std::string> responses_protocol::conversation_of(const std::string& id) const {
  auto stored = conversation_before(lane_.edge.responses, id);
  if (stored) return stored;
  for (const auto& record : unstored_) {
    if (record->id() == id) return record->conversation();
  }
  return stored;
}

void responses_protocol::start(std::shared_ptr<const response_request> request, std::string conversation,
                               active_run entry) {
  auto run = std::make_shared<response_run>(lane_, std::move(request), std::move(conversation), fresh_id("resp_"));
  entry.run = run;
  ++lanes_[entry.stream_id].running;
  runs_.emplace(run->record()->id(), std::move(entry));
  TANDEM_ASSERT(run->start(*this));  // a random id is nobody else's
}

void responses_protocol::start_waiting(const std::string& stream_id) {
  const auto found = lanes_.find(stream_id);
  if (found == lanes_.end() || closed_) return;
  request_lane& lane = found->second;
  if (lane.running > 0) return;
  if (lane.waiting.empty()) {
    lanes_.erase(found);
    return;
  }
  waiting_request next = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  --waiting_;
  waiting_bytes_ -= next.bytes;
  start_from_client(std::move(next.request));
}

// --- what runs -------------------------------------------------------------------------------------------------

void responses_protocol::on_begun(response_run& run) {
  const std::string& id = run.record()->id();
  active_run& entry = runs_.at(id);
  entry.taken.clear();
  std::string before = entry.steered_id;  // events of a lane come in the order of its responses
  if (!run.request().concurrent) before = std::exchange(last_of_lane_[entry.stream_id], id);
  feed_.follow(run.record(), 0, lane_members(id, entry.stream_id), std::move(before));
  feed_.pump();
}

void responses_protocol::on_ended(response_run& run) {
  auto found = runs_.extract(run.record()->id());
  active_run entry = std::move(found.mapped());
  --lanes_[entry.stream_id].running;
  const std::string stream_id = entry.stream_id;
  if (!run.request().store) keep_unstored(run);
  if (!entry.steers.empty()) {
    succeed(run, std::move(entry));
  } else {
    start_waiting(stream_id);
  }
  feed_.pump();
  tell_when_quiet();
}

// Refused before it began; as an automatic successor it is the steering that failed.
void responses_protocol::on_whole(response_run& run, http_response response) {
  auto found = runs_.extract(run.record()->id());
  const active_run entry = std::move(found.mapped());
  --lanes_[entry.stream_id].running;
  for (const steering& one : entry.taken) {
    send(steer_failed(one.id, entry.steered_id, one.input_json, "successor_creation_failed",
                      "The successor was refused; see the error event of its lane.", 0));
  }
  send(error_event(response, entry.stream_id));
  start_waiting(entry.stream_id);
  tell_when_quiet();
}

void responses_protocol::keep_unstored(const response_run& run) {
  unstored_.push_back(run.record());
  unstored_bytes_ += run.record()->conversation().size();
  while (unstored_bytes_ > limits::kMaxOutboxBytes || unstored_.size() > limits::kMaxRequestsPerSocket) {
    unstored_bytes_ -= unstored_.front()->conversation().size();
    unstored_.pop_front();
  }
}

void responses_protocol::tell_when_quiet() {
  if (!closed_ && quiet()) channel_.on_quiet();
}

void responses_protocol::on_all_sent(const std::string& id) {
  std::erase_if(last_of_lane_, [&](const auto& entry) { return entry.second == id; });
  tell_when_quiet();
}

void responses_protocol::on_events_lost(const std::string& id) {
  send(
      error_event(error{error_code::overloaded,
                        "Events of response '" + id + "' were not read for too long and are gone; GET it when it ends.",
                        "response_id"},
                  {}));
  tell_when_quiet();
}

// --- steering --------------------------------------------------------------------------------------------------

void responses_protocol::steer(client_event event) {
  const auto fail_with = [&](std::string_view code, std::string_view message) {
    send(steer_failed({}, event.response_id, event.steering_json, code, message, 0));
  };
  if (event.problem) return fail_with("invalid_input", event.problem->message);
  const auto found = runs_.find(event.response_id);
  if (found == runs_.end()) {
    const auto record = lane_.edge.responses.find(event.response_id);
    if (!record) return fail_with("response_not_found", "There is no such response on this socket.");
    if (record->ended()) return fail_with("response_already_completed", "The response has ended.");
    return fail_with("steering_not_supported", "Only the socket that created a response can steer it.");
  }
  active_run& entry = found->second;
  if (entry.steers.size() >= limits::kMaxPendingSteers) {
    return fail_with("too_many_pending_steers", "Too much steering input waits for this response.");
  }
  const std::string id = fresh_id("steer_");
  entry.steers.push_back({id, std::move(event.steering), std::move(event.steering_json)});
  entry.run->record()->append(steer_accepted(id, event.response_id));
  entry.run->end_for_steering();
}

// The response that was steered has ended: another one goes on from it, with the same settings.
void responses_protocol::succeed(const response_run& parent, active_run ended) {
  const std::string& parent_id = parent.record()->id();
  if (!parent.draft().calls().empty()) {
    for (const steering& one : ended.steers) {
      parent.record()->append(steer_pending(one.id, parent_id, parent.draft().calls()));
    }
    keep_pending(parent_id, std::move(ended.steers));
    return start_waiting(ended.stream_id);
  }
  auto request = std::make_shared<response_request>(parent.request());
  request->input = {};
  for (const steering& one : ended.steers) {
    request->input.items.insert(request->input.items.end(), one.input.items.begin(), one.input.items.end());
    request->input.messages = join_messages(request->input.messages, one.input.messages);
  }
  request->previous_id = parent_id;
  active_run entry;
  entry.stream_id = ended.stream_id;
  entry.lease = std::move(ended.lease);
  entry.taken = std::move(ended.steers);
  entry.steered_id = parent_id;
  start(std::move(request), parent.record()->conversation(), std::move(entry));
}

void responses_protocol::keep_pending(const std::string& parent_id, std::vector<steering> steers) {
  if (pending_steers_.size() >= limits::kMaxPendingSteers) {
    const auto given_up = pending_steers_.extract(pending_steers_.begin());
    for (const steering& one : given_up.mapped()) {
      send(steer_failed(one.id, given_up.key(), one.input_json, "too_many_pending_steers",
                        "Too many responses of this socket wait for tools' results.", 0));
    }
  }
  pending_steers_[parent_id] = std::move(steers);
}

void responses_protocol::add_pending_steers(response_request& request) {
  auto found = pending_steers_.extract(request.previous_id);
  if (found.empty()) return;
  response_input joined;
  for (steering& one : found.mapped()) {
    joined.items.insert(joined.items.end(), one.input.items.begin(), one.input.items.end());
    joined.messages = join_messages(joined.messages, one.input.messages);
  }
  joined.items.insert(joined.items.end(), request.input.items.begin(), request.input.items.end());
  joined.messages = join_messages(joined.messages, request.input.messages);
  request.input = std::move(joined);
}

// --- cancelling, flow, coming back -----------------------------------------------------------------------------

void responses_protocol::cancel(const client_event& event) {
  if (event.response_id.empty()) return cancel_lane(event.stream_id);
  const auto found = runs_.find(event.response_id);
  if (found != runs_.end()) return found->second.run->end();
  const auto record = lane_.edge.responses.find(event.response_id);
  if (!record) return refuse(unknown_response(event.response_id), event.stream_id);
  for (const request_id each : lane_.edge.calls.find(event.response_id)) lane_.engine->cancel(each);
}

void responses_protocol::cancel_lane(const std::string& stream_id) {
  const auto found = lanes_.find(stream_id);
  if (found == lanes_.end()) return;
  const auto dropped = std::exchange(found->second.waiting, {});
  waiting_ -= dropped.size();
  for (const waiting_request& one : dropped) waiting_bytes_ -= one.bytes;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    send(error_event(error{error_code::cancelled, "The response was cancelled before it began.", {}}, stream_id));
  }
  for (auto& [id, entry] : runs_) {
    if (entry.stream_id == stream_id) entry.run->end();
  }
}

void responses_protocol::set_paused(const client_event& event, bool paused) {
  const auto next = feed_.set_paused(event.response_id, paused);
  if (!next) return refuse(unknown_response(event.response_id), event.stream_id);
  send(flow_event(paused ? "response.paused" : "response.resumed", event.response_id, *next));
  feed_.pump();
}

void responses_protocol::resume_from(const client_event& event) {
  if (feed_.follows(event.response_id)) {
    return refuse({error_code::invalid_argument, "This socket has the response's events already.", "response_id"},
                  event.stream_id);
  }
  if (feed_.size() + runs_.size() + waiting_ >= limits::kMaxRequestsPerSocket) {
    return refuse({error_code::overloaded, "Too many responses are under way on this socket; wait for some.", {}},
                  event.stream_id);
  }
  lane_.edge.responses.expire(std::chrono::steady_clock::now());
  const auto record = lane_.edge.responses.find(event.response_id);
  if (!record) return refuse(unknown_response(event.response_id), event.stream_id);
  if (!feed_.follow(record, event.after + 1, lane_members(event.response_id, event.stream_id))) {
    return refuse({error_code::not_found, "These events are not kept any more; GET the response.", "sequence_number"},
                  event.stream_id);
  }
  feed_.pump();
}

void responses_protocol::on_closed(bool lost) {
  closed_ = true;
  feed_.close();
  lanes_.clear();
  waiting_ = 0;
  waiting_bytes_ = 0;
  for (const auto& [id, entry] : std::exchange(runs_, {})) {
    if (lost) {
      entry.run->let_go();
    } else {
      entry.run->cancel();
    }
  }
}

}  // namespace

std::unique_ptr<socket_protocol> make_responses_protocol(io_lane& lane, socket_channel& channel, socket_key key) {
  return std::make_unique<responses_protocol>(lane, channel, key);
}

}  // namespace tandem::net

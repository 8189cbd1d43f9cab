// Responses that are there: steering, cancelling, pausing, following them again.

#include <chrono>
#include <utility>

#include "config/edge_limits.hpp"
#include "net/endpoints.hpp"
#include "net/responses/response_store.hpp"
#include "net/responses/responses_connection.hpp"

namespace tandem::net {

void responses_connection::steer(client_event event) {
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
void responses_connection::succeed(const response_run& parent, active_run ended) {
  const std::string& parent_id = parent.record()->id();
  if (!parent.draft().calls().empty()) {
    await_results(parent, std::move(ended.steers));
    return start_waiting(ended.stream_id);
  }
  auto request = std::make_shared<response_request>(parent.request());
  request->input = join_steers(ended.steers);
  request->previous_id = parent_id;
  active_run entry;
  entry.stream_id = ended.stream_id;
  entry.lease = std::move(ended.lease);
  entry.taken = std::move(ended.steers);
  entry.steered_id = parent_id;
  start(std::move(request), parent.record()->conversation(), std::move(entry));
}

// It called functions, so what steers it can only go on behind their results.
void responses_connection::await_results(const response_run& parent, std::vector<steering> steers) {
  const std::string& parent_id = parent.record()->id();
  for (const steering& one : steers) {
    parent.record()->append(steer_pending(one.id, parent_id, parent.draft().calls()));
  }
  const auto given_up = pending_steers_.keep(parent_id, std::move(steers));
  for (const steering& one : given_up.steers) {
    send(steer_failed(one.id, given_up.response_id, one.input_json, "too_many_pending_steers",
                      "Too many responses of this socket wait for tools' results.", 0));
  }
}

// --- cancelling, flow, coming back -----------------------------------------------------------------------------

void responses_connection::cancel(const client_event& event) {
  if (event.response_id.empty()) return cancel_lane(event.stream_id);
  const auto found = runs_.find(event.response_id);
  if (found != runs_.end()) return found->second.run->end();
  const auto record = lane_.edge.responses.find(event.response_id);
  if (!record) return refuse(unknown_response(event.response_id), event.stream_id);
  for (const request_id each : lane_.edge.calls.find(event.response_id)) lane_.engine->cancel(each);
}

void responses_connection::cancel_lane(const std::string& stream_id) {
  for (std::size_t dropped = lanes_.drop(stream_id); dropped > 0; --dropped) {
    send(error_event(error{error_code::cancelled, "The response was cancelled before it began.", {}}, stream_id));
  }
  for (auto& [id, entry] : runs_) {
    if (entry.stream_id == stream_id) entry.run->end();
  }
}

void responses_connection::set_paused(const client_event& event, bool paused) {
  const auto next = feed_.set_paused(event.response_id, paused);
  if (!next) return refuse(unknown_response(event.response_id), event.stream_id);
  send(flow_event(paused ? "response.paused" : "response.resumed", event.response_id, *next));
  feed_.pump();
}

void responses_connection::resume_from(const client_event& event) {
  if (feed_.follows(event.response_id)) {
    return refuse({error_code::invalid_argument, "This socket has the response's events already.", "response_id"},
                  event.stream_id);
  }
  if (is_full()) return refuse_full(event.stream_id);
  lane_.edge.responses.expire(std::chrono::steady_clock::now());
  const auto record = lane_.edge.responses.find(event.response_id);
  if (!record) return refuse(unknown_response(event.response_id), event.stream_id);
  if (!feed_.follow(record, event.after + 1, lane_members(event.response_id, event.stream_id))) {
    return refuse({error_code::not_found, "These events are not kept any more; GET the response.", "sequence_number"},
                  event.stream_id);
  }
  feed_.pump();
}

}  // namespace tandem::net

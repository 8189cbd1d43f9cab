#include "net/responses/socket_events.hpp"

#include "net/json_text.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

json_writer& open_steer(json_writer& out, std::string_view type, const std::string& steer_id,
                        const std::string& response_id) {
  out.begin_object().key("type").string(type).key("steer").begin_object();
  if (!steer_id.empty()) out.key("id").string(steer_id);
  return out.key("previous_response_id").string(response_id);
}

}  // namespace

std::string lane_members(const std::string& response_id, const std::string& stream_id) {
  std::string members = ",\"response_id\":";
  append_json_string(members, response_id);
  if (stream_id.empty()) return members;
  members += ",\"stream_id\":";
  append_json_string(members, stream_id);
  return members;
}

std::string error_event(const http_response& refusal, const std::string& stream_id) {
  std::string event = "{\"type\":\"error\",\"status\":" + std::to_string(refusal.status);
  if (!stream_id.empty()) {
    event += ",\"stream_id\":";
    append_json_string(event, stream_id);
  }
  return event + "," + refusal.body.substr(1);
}

std::string error_event(const error& reason, const std::string& stream_id) {
  return error_event(error_response(reason), stream_id);
}

std::string flow_event(std::string_view type, const std::string& response_id, std::int64_t next_number) {
  json_writer out;
  out.begin_object().key("type").string(type).key("response_id").string(response_id);
  out.key("last_sequence_number").integer(next_number - 1).end_object();
  return out.take();
}

std::string steer_accepted(const std::string& steer_id, const std::string& response_id) {
  json_writer out;
  open_steer(out, "response.steer.accepted", steer_id, response_id).end_object().end_object();
  return out.take() + "\n";
}

std::string steer_pending(const std::string& steer_id, const std::string& response_id,
                          const std::vector<response_draft::open_call>& calls) {
  json_writer out;
  open_steer(out, "response.steer.pending", steer_id, response_id).end_object();
  out.key("reason").string("waiting_for_required_input").key("required_input").begin_array();
  for (const auto& call : calls) {
    out.begin_object().key("type").string("function_call_output").key("call_id").string(call.call_id);
    out.key("name").string(call.name).end_object();
  }
  out.end_array().end_object();
  return out.take() + "\n";
}

std::string steer_failed(const std::string& steer_id, const std::string& response_id, const std::string& input_json,
                         std::string_view code, std::string_view message, std::int64_t number) {
  json_writer out;
  open_steer(out, "response.steer.failed", steer_id, response_id).key("input").raw(input_json).end_object();
  out.key("error").begin_object().key("type").string("invalid_request_error").key("code").string(code);
  out.key("message").string(message).end_object().key("sequence_number").integer(number).end_object();
  return out.take();
}

}  // namespace tandem::net

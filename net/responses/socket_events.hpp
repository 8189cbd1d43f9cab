#pragma once
/// Events of the Responses WebSocket that are not of a response's own stream. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "net/http_message.hpp"
#include "net/responses/input_items.hpp"
#include "net/responses/response_draft.hpp"

namespace tandem::net {

/// A steering input that was taken and waits for the response that it steers to end. Owner: the protocol.
struct steering {
  std::string id;
  response_input input;
  std::string input_json;  ///< as it came, to be given back when it cannot be used
};

/// Members that every event of a lane's response has, with a leading comma.
std::string lane_members(const std::string& response_id, const std::string& stream_id);
/// `error`, with the status and body that HTTP would have; `stream_id` empty: the event that was wrong named none.
std::string error_event(const http_response& refusal, const std::string& stream_id);
std::string error_event(const error& reason, const std::string& stream_id);
/// `response.paused` and `response.resumed`.
std::string flow_event(std::string_view type, const std::string& response_id, std::int64_t next_number);
/// Lines for the record of the response that is steered.
std::string steer_accepted(const std::string& steer_id, const std::string& response_id);
std::string steer_pending(const std::string& steer_id, const std::string& response_id,
                          const std::vector<response_draft::open_call>& calls);
/// `response.steer.failed`; `steer_id` empty: none was given yet.
std::string steer_failed(const std::string& steer_id, const std::string& response_id, const std::string& input_json,
                         std::string_view code, std::string_view message, std::int64_t number);

}  // namespace tandem::net

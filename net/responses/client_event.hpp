#pragma once
/// A client's event on the Responses WebSocket as values. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/responses/response_request.hpp"

namespace tandem::net {

enum class client_event_kind : std::uint8_t { unknown, create, steer, cancel, pause, resume, resume_from };

struct client_event {
  client_event_kind kind = client_event_kind::unknown;
  std::optional<error> problem;  ///< why it is refused; what could be read is there nevertheless
  std::string stream_id;         ///< empty: the nameless lane
  std::string response_id;  ///< what steer, cancel, pause, resume and resume_from are about; for cancel maybe empty
  std::int64_t after = -1;  ///< resume_from: the last sequence number that was seen
  response_request create;
  response_input steering;
  std::string steering_json = "null";  ///< the steering input as it came
};

client_event parse_client_event(std::string_view text, const request_facts& facts);

}  // namespace tandem::net

#pragma once
/// A request for a response (POST /v1/responses, response.create) as values. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "net/openai_requests.hpp"
#include "net/responses/input_items.hpp"

namespace tandem::net {

/// Copied for an automatic successor, which keeps everything but the input.
struct response_request {
  api_request call;           ///< one prompt, which compose() fills in
  response_input input;       ///< of this request alone
  std::string instructions;   ///< empty: none
  std::string previous_id;    ///< empty: none
  std::string settings_json;  ///< members of the answer that repeat the request, joined by commas
  bool store = true;
  bool generate = true;        ///< false: only keeps the state for a later response
  bool background = false;     ///< goes on without its client; then `call` always streams, into the record
  bool events_wanted = false;  ///< the client asked for a stream
  // Of response.create only:
  std::string stream_id;    ///< the lane; empty: the nameless one
  bool concurrent = false;  ///< does not wait for others of its lane
};

result<response_request> parse_response(std::string_view body, std::string_view timeout_header,
                                        const request_facts& facts);
/// The same from an object that was opened already; mistakes stay in `fields`.
response_request read_response(field_reader& fields, std::string_view timeout_header, const request_facts& facts);

/// What is to be generated behind `conversation` (chat messages joined by commas; may be empty).
api_request compose(const response_request& request, const std::string& conversation);

}  // namespace tandem::net

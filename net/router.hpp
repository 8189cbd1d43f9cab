#pragma once
/// Which endpoint answers a request, and which requests are refused before any endpoint sees them.

#include <memory>
#include <optional>
#include <string_view>

#include "net/http_message.hpp"
#include "net/io_lane.hpp"
#include "net/response_channel.hpp"
#include "net/websocket/websocket_session.hpp"

namespace tandem::net {

/// What the header alone decides: a browser's question before a cross-origin request, unknown path 404, method 405, key
/// 401, page of another origin 403, content type 415, model still loading 503.
std::optional<http_response> refusal(const io_lane& lane, const http_request& head);

/// Whether it gives the engine something to do; questions about the server and cancellations do not.
bool is_work(const http_request& head);

/// Answers through `channel`, at once or later. Returns what goes on, or null when the answer was sent already.
/// Requires that refusal() had nothing against it.
std::shared_ptr<running_call> answer_request(io_lane& lane, http_request request,
                                             std::weak_ptr<response_channel> channel);

/// What a WebSocket opened at `path` speaks; null where none can be opened.
protocol_maker protocol_at(std::string_view path);

}  // namespace tandem::net

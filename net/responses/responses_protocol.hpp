#pragma once
/// GET /v1/responses with an upgrade: OpenAI's Responses events in both directions, and this server's own.

#include "net/websocket/socket_protocol.hpp"

namespace tandem::net {

std::unique_ptr<socket_protocol> make_responses_protocol(io_lane& lane, socket_channel& channel, socket_key key);

}  // namespace tandem::net

#pragma once
/// One WebSocket: frames in and out, pings, the ways to close. What is said in them is a socket_protocol's.

#include <memory>

#include "net/byte_stream.hpp"
#include "net/http_message.hpp"
#include "net/websocket/socket_protocol.hpp"

namespace tandem::net {

/// Takes the connection over and answers the upgrade request, in which handshake_refusal() found nothing wrong. Lives
/// on its lane.
void start_websocket(io_lane& lane, std::unique_ptr<byte_stream> stream, const http_request& upgrade,
                     protocol_maker make_protocol);

}  // namespace tandem::net

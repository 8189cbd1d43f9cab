#pragma once
/// GET /ws: many requests in flight on one socket. Beast stays inside the .cpp.

#include <boost/asio/ip/tcp.hpp>

#include "net/http_message.hpp"
#include "net/io_lane.hpp"

namespace tandem::net {

/// Takes the connection over and answers the upgrade request (also when it is a wrong one). Lives on its lane.
void start_websocket(io_lane& lane, boost::asio::ip::tcp::socket socket, const http_request& upgrade);

}  // namespace tandem::net

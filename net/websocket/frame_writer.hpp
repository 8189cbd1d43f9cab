#pragma once
/// Messages → bytes of a WebSocket server's frames. No sockets.

#include <string>
#include <string_view>

#include "net/websocket/frame.hpp"

namespace tandem::net {

/// One whole frame, unmasked as a server's are. `compressed`: the payload is a deflated message.
std::string frame_bytes(opcode kind, std::string_view payload, bool compressed = false);
/// A close frame; without a payload when `code` is `none`. The reason is cut to what fits.
std::string close_frame(close_code code, std::string_view reason);

}  // namespace tandem::net

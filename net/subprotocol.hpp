#pragma once
/// The WebSocket subprotocols of /ws. A browser's page cannot send an Authorization header with a WebSocket, so it
/// offers two: `tandem`, which the server picks, and `tandem.key.` with the key in base64url, which it only reads.

#include <optional>
#include <string>
#include <string_view>

namespace tandem::net {

inline constexpr std::string_view kSubprotocol = "tandem";
inline constexpr std::string_view kKeySubprotocol = "tandem.key.";

/// Whether the list in a Sec-WebSocket-Protocol header names `tandem`.
bool offers_subprotocol(std::string_view header);
/// The key in such a list; nothing when there is none or it is not base64url.
std::optional<std::string> key_of_subprotocol(std::string_view header);

}  // namespace tandem::net

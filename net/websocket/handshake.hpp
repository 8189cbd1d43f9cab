#pragma once
/// The opening handshake: an upgrade request → what was agreed on, or why not. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "net/http_message.hpp"

namespace tandem::net {

/// permessage-deflate as agreed, always without context takeover on both sides.
struct deflate_terms {
  int window_bits = 15;            ///< of what the server sends; 9 … 15
  bool window_bits_asked = false;  ///< the client named them, so the answer does
};

struct socket_terms {
  std::string accept;       ///< Sec-WebSocket-Accept
  std::string subprotocol;  ///< empty: none
  std::optional<deflate_terms> deflate;
};

/// Where the request breaks RFC 6455: 400, or 426 with the version that is spoken. Otherwise nothing.
std::optional<http_response> handshake_refusal(const http_request& request);
/// Requires that nothing was wrong.
socket_terms agree(const http_request& request);
/// "101 Switching Protocols" with its blank line.
std::string switching_head(const socket_terms& terms);

/// The first of the offered extensions (a header's value) that is permessage-deflate on terms the server can keep.
std::optional<deflate_terms> choose_deflate(std::string_view offers);
/// The first offered subprotocol that the server speaks. One that carries a key is never chosen: answers are not
/// secret.
std::string choose_subprotocol(std::string_view offers);
/// The API key among the offered subprotocols, for browsers, which can set no header: `api-key.` and its base64url, or
/// OpenAI's `openai-insecure-api-key.` and the key itself. Empty: none.
std::string key_of_subprotocols(std::string_view offers);

}  // namespace tandem::net

#pragma once
/// What pages of other origins may do (CORS): decided from a request's header alone. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "net/http_message.hpp"

namespace tandem::net {

/// "*" among origins, methods or headers stands for any.
struct cross_origin_rules {
  std::vector<std::string> origins;  ///< e.g. "https://example.com"; empty: no other origin
  std::vector<std::string> methods;
  std::vector<std::string> headers;
  bool credentials = false;  ///< pages may send what the browser knows of this server
  /// Names of this server beside local ones, e.g. "llm.example.com" or "*.example.com"; see is_rebound().
  std::vector<std::string> hosts;

  bool allow(std::string_view origin) const;
};

/// A browser asks before it sends: OPTIONS with the header Access-Control-Request-Method.
bool is_preflight(const http_request& head);
/// 204 with what the page may do; 403 when its origin, the method or a header field may not be.
http_response answer_preflight(const cross_origin_rules& rules, const http_request& head);
/// The fields that let the page read the answer; none for a request without Origin, or of one that is not allowed.
std::vector<std::pair<std::string, std::string>> cross_origin_fields(const cross_origin_rules& rules,
                                                                     std::string_view origin);

/// Whether a page may open a WebSocket here: of the server's own origin, or of an allowed one. Browsers ask nobody
/// before they do it.
bool may_open_socket(const cross_origin_rules& rules, const http_request& head);

/// Whether a page asks that may belong to another site: its owner can point a name of his at this server's address (DNS
/// rebinding), and the browser then takes server and page for one origin. Not so by an address, by a name that no
/// stranger can own, by TLS, whose certificate proves the name, and by a name or origin that the rules list. A request
/// without Origin is no page's.
bool is_rebound(const cross_origin_rules& rules, const http_request& head);

}  // namespace tandem::net

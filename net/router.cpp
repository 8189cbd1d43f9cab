#include "net/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/endpoints.hpp"
#include "net/openai_answers.hpp"
#include "net/responses/responses_protocol.hpp"

namespace tandem::net {
namespace {

using endpoint = std::shared_ptr<running_call> (*)(io_lane&, http_request&, std::weak_ptr<response_channel>);

struct route {
  std::string_view path;
  bool is_prefix;  ///< something non-empty follows
  std::string_view method;
  bool open;  ///< without a key, and while the model loads
  endpoint answer;
};

constexpr std::array kRoutes{
    route{"/live", false, "GET", true, answer_live},
    route{"/health", false, "GET", true, answer_health},
    route{"/", false, "GET", true, answer_page},
    route{"/page/", true, "GET", true, answer_page},
    route{"/docs", false, "GET", true, answer_page},
    route{"/openapi.json", false, "GET", true, answer_page},
    route{"/version", false, "GET", false, answer_version},
    route{"/metrics", false, "GET", false, answer_metrics},
    route{"/v1/batch", false, "GET", false, answer_batch},
    route{"/v1/models", false, "GET", false, answer_models},
    route{"/v1/models/", true, "GET", false, answer_one_model},
    route{"/ws", false, "GET", false, answer_upgrade_required},
    route{"/generate", false, "POST", false, answer_generation},
    route{"/v1/completions", false, "POST", false, answer_generation},
    route{"/v1/chat/completions", false, "POST", false, answer_generation},
    route{"/v1/responses", false, "POST", false, answer_create_response},
    route{"/v1/responses", false, "GET", false, answer_upgrade_required},
    route{"/v1/responses/", true, "GET", false, answer_get_response},
    route{"/v1/responses/", true, "POST", false, answer_post_to_response},
    route{"/v1/responses/", true, "DELETE", false, answer_delete_response},
    route{"/v1/cancel/", true, "POST", false, answer_cancel},
    route{"/tokenize", false, "POST", false, answer_tokenize},
    route{"/detokenize", false, "POST", false, answer_detokenize},
};

bool path_fits(const route& one, std::string_view path) {
  return one.is_prefix ? path.starts_with(one.path) && path.size() > one.path.size() : path == one.path;
}

bool method_fits(const route& found, std::string_view method) {
  return method == found.method || (method == "HEAD" && found.method == "GET");
}

/// A path's routes: the one for the method, else any of them.
struct found_route {
  const route* at = nullptr;  ///< null: no such path
  bool method_fits = false;
  std::string allowed;  ///< methods, as in an Allow field
};

found_route find_route(std::string_view path, std::string_view method) {
  found_route found;
  for (const route& each : kRoutes) {
    if (!path_fits(each, path)) continue;
    if (!found.method_fits) found.at = &each;
    found.method_fits = found.method_fits || method_fits(each, method);
    if (!found.allowed.empty()) found.allowed += ", ";
    found.allowed += each.method == "GET" ? "GET, HEAD" : each.method;
  }
  return found;
}

// A browser opens a WebSocket to any address a page names and says which page that was; without this, every site could
// drive a server on the loopback address and read its answers. Over HTTP it asks first, unless the page made it believe
// that server and page are one. A key already keeps pages out.
std::optional<http_response> page_refusal(const edge_state& edge, const http_request& head) {
  const cross_origin_rules& rules = edge.options.cross_origin;
  if (!edge.keys.open()) return std::nullopt;
  if (is_rebound(rules, head)) {
    return error_response(403,
                          fmt::format("A browser's page may not use this server by the name '{}'; see --allowed-hosts.",
                                      head.header("Host").substr(0, 256)),
                          "foreign_host");
  }
  if (!head.upgrades_to_websocket || may_open_socket(rules, head)) return std::nullopt;
  return error_response(403, "A page of another origin may not open a WebSocket here; see --allowed-origins.",
                        "foreign_origin");
}

// A browser sends other types across origins without asking, and a page can leave the type out; so they could drive a
// server on the loopback address.
bool is_json(const http_request& head) {
  const std::string_view content_type = head.header("Content-Type");
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  const std::size_t end = type.find_last_not_of(" \t");
  if (content_type.empty()) return head.header("Origin").empty();
  return equal_ignoring_case(type.substr(0, end == std::string_view::npos ? 0 : end + 1), "application/json");
}

// For who asks, whatever it asks.
std::optional<http_response> caller_refusal(const edge_state& edge, const http_request& head, bool open) {
  if (!open && !edge.keys.open() && !edge.keys.find(head)) {
    auto response =
        error_response(401, "The API key is missing or wrong; send 'Authorization: Bearer KEY'.", "invalid_api_key");
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  return open ? std::nullopt : page_refusal(edge, head);
}

}  // namespace

bool is_work(const http_request& head) {
  const route* found = find_route(head.path, head.method).at;
  return found != nullptr && found->method == "POST" && !found->is_prefix;
}

std::optional<http_response> refusal(const io_lane& lane, const http_request& head) {
  const cross_origin_rules& pages = lane.edge.options.cross_origin;
  if (!pages.origins.empty() && is_preflight(head)) return answer_preflight(pages, head);
  const found_route found = find_route(head.path, head.method);
  const bool open = found.at != nullptr && found.at->open;
  if (auto refused = caller_refusal(lane.edge, head, open)) return refused;
  if (found.at == nullptr) {
    return error_response(
        404, fmt::format("There is no '{}' here; see /docs for the paths.", std::string_view(head.path).substr(0, 256)),
        "not_found");
  }
  if (!found.method_fits) {
    auto response =
        error_response(405, fmt::format("'{}' takes {} only.", found.at->path, found.allowed), "method_not_allowed");
    response.headers.emplace_back("Allow", found.allowed);
    return response;
  }
  if (!open && !lane.engine) {
    return error_response(error{error_code::unavailable, "The model is still loading; try again soon.", {}});
  }
  if (is_work(head) && !is_json(head)) {
    return error_response(415, "The body must be JSON; send 'Content-Type: application/json'.",
                          "unsupported_media_type");
  }
  return std::nullopt;
}

std::shared_ptr<running_call> answer_request(io_lane& lane, http_request request,
                                             std::weak_ptr<response_channel> channel) {
  const found_route found = find_route(request.path, request.method);
  TANDEM_ASSERT(found.at != nullptr && found.method_fits);
  return found.at->answer(lane, request, std::move(channel));
}

protocol_maker protocol_at(std::string_view path) {
  if (path == "/ws") return make_frame_protocol;
  return path == "/v1/responses" ? make_responses_protocol : nullptr;
}

}  // namespace tandem::net

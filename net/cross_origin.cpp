#include "net/cross_origin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/edge_limits.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

using fields = std::vector<std::pair<std::string, std::string>>;

// Reserved: RFC 6761, RFC 6762, RFC 8375, and ICANN's word on .internal.
constexpr std::array<std::string_view, 4> kLocalDomains{".localhost", ".local", ".home.arpa", ".internal"};

bool lists(const std::vector<std::string>& entries, std::string_view wanted) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const std::string& entry) { return entry == "*" || equal_ignoring_case(entry, wanted); });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// Of a comma-separated list.
bool allows_all(const std::vector<std::string>& entries, std::string_view wanted) {
  while (!wanted.empty()) {
    const std::size_t comma = std::min(wanted.find(','), wanted.size());
    const std::string_view name = trimmed(wanted.substr(0, comma));
    if (!name.empty() && !lists(entries, name)) return false;
    wanted.remove_prefix(std::min(comma + 1, wanted.size()));
  }
  return true;
}

http_response refused(std::string_view what) {
  return error_response(403, fmt::format("A page of another origin may not use {} here; see --allowed-origins.", what),
                        "foreign_origin");
}

bool same_origin(const http_request& head) {
  const std::string_view origin = head.header("Origin");
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && equal_ignoring_case(origin.substr(scheme + 3), head.header("Host"));
}

bool ends_with(std::string_view name, std::string_view end) {
  return name.size() > end.size() && equal_ignoring_case(name.substr(name.size() - end.size()), end);
}

// A host without its port and the root's dot.
std::string_view name_of_host(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  host = host.substr(0, host.find(':'));
  return host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
}

// An address, which a browser writes as digits and dots or in brackets, or a name that public DNS gives to nobody.
bool is_local_name(std::string_view name) {
  if (name.starts_with('[')) return true;
  if (name.find_first_not_of("0123456789.") == std::string_view::npos) return true;
  if (name.find('.') == std::string_view::npos) return true;
  return std::any_of(kLocalDomains.begin(), kLocalDomains.end(),
                     [&](std::string_view domain) { return ends_with(name, domain); });
}

bool is_listed_name(const std::vector<std::string>& entries, std::string_view name) {
  return lists(entries, name) || std::any_of(entries.begin(), entries.end(), [&](std::string_view entry) {
           return entry.starts_with("*.") && ends_with(name, entry.substr(1));
         });
}

}  // namespace

bool cross_origin_rules::allow(std::string_view origin) const {
  return !origin.empty() && lists(origins, origin);
}

bool is_preflight(const http_request& head) {
  return head.method == "OPTIONS" && !head.header("Origin").empty() &&
         !head.header("Access-Control-Request-Method").empty();
}

fields cross_origin_fields(const cross_origin_rules& rules, std::string_view origin) {
  if (!rules.allow(origin)) return {};
  // The origin itself, not "*", which browsers refuse together with credentials.
  fields out{{"Access-Control-Allow-Origin", std::string(origin)},
             {"Vary", "Origin"},
             {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"}};
  if (rules.credentials) out.emplace_back("Access-Control-Allow-Credentials", "true");
  return out;
}

http_response answer_preflight(const cross_origin_rules& rules, const http_request& head) {
  const std::string_view method = head.header("Access-Control-Request-Method");
  const std::string_view wanted = head.header("Access-Control-Request-Headers");
  if (!rules.allow(head.header("Origin"))) return refused("this server");
  if (!lists(rules.methods, method)) return refused("this method");
  if (!allows_all(rules.headers, wanted)) return refused("one of these header fields");
  http_response response;
  response.status = 204;
  response.headers = {{"Access-Control-Allow-Methods", std::string(method)},
                      {"Access-Control-Max-Age", fmt::format("{}", limits::kPreflightAge.count())}};
  if (!wanted.empty()) response.headers.emplace_back("Access-Control-Allow-Headers", std::string(wanted));
  return response;
}

bool may_open_socket(const cross_origin_rules& rules, const http_request& head) {
  if (head.header("Origin").empty() || rules.allow(head.header("Origin"))) return true;
  return same_origin(head) && !is_rebound(rules, head);
}

bool is_rebound(const cross_origin_rules& rules, const http_request& head) {
  const std::string_view origin = head.header("Origin");
  if (!same_origin(head) || rules.allow(origin) || origin.starts_with("https://")) return false;
  const std::string_view name = name_of_host(head.header("Host"));
  return !is_local_name(name) && !is_listed_name(rules.hosts, name);
}

}  // namespace tandem::net

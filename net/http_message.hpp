#pragma once
/// A request and an answer as values, after and before the wire. No library types.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::net {

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

struct http_request {
  std::string method;
  std::string path;   ///< without the query
  std::string query;  ///< behind '?'; as it came
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool http_1_1 = true;
  bool keep_alive = true;
  bool expects_continue = false;
  bool upgrades_to_websocket = false;

  /// First header of that name, or empty.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (equal_ignoring_case(key, name)) return value;
    }
    return {};
  }
  /// First parameter of that name in the query, as it came; nothing when there is none.
  std::optional<std::string_view> query_value(std::string_view name) const {
    for (std::string_view rest = query; !rest.empty();) {
      const std::string_view pair = rest.substr(0, rest.find('&'));
      rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
      const std::size_t equals = pair.find('=');
      if (pair.substr(0, equals) != name) continue;
      return equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
    }
    return std::nullopt;
  }
};

struct http_response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  ///< besides length, type, date and connection
};

}  // namespace tandem::net

#include "net/websocket/handshake.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <vector>

#include "config/edge_limits.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

constexpr std::string_view kVersion = "13";
constexpr std::string_view kMagic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455, 1.3
constexpr std::array<std::string_view, 2> kSubprotocols{"tandem", "realtime"};
constexpr std::string_view kKeyPrefix = "api-key.";
constexpr std::string_view kOpenAiKeyPrefix = "openai-insecure-api-key.";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Parts of a header's list, at most as many as anyone needs.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty() && parts.size() < limits::kMaxListedOffers) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return parts;
}

bool lists(std::string_view list, std::string_view token) {
  for (const std::string_view part : parts_of(list, ',')) {
    if (equal_ignoring_case(part, token)) return true;
  }
  return false;
}

// A list that a client spread over several fields of one name.
std::string joined_header(const http_request& request, std::string_view name) {
  std::string joined;
  for (const auto& [key, value] : request.headers) {
    if (!equal_ignoring_case(key, name)) continue;
    if (!joined.empty()) joined += ',';
    joined += value;
  }
  return joined;
}

std::optional<std::string> decoded_base64(std::string text) {
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  std::size_t padding = 0;
  while (text.ends_with('=')) text.pop_back();
  while (text.size() % 4 != 0) {
    text += '=';
    ++padding;
  }
  if (padding > 2) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int bytes = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (bytes < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(bytes) - padding);
  return out;
}

std::string accept_of(std::string_view key) {
  const std::string text = std::string(key) + std::string(kMagic);
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 29> encoded{};  // 20 bytes are 28 characters, and EVP_EncodeBlock ends them with a zero
  EVP_EncodeBlock(encoded.data(), digest.data(), SHA_DIGEST_LENGTH);
  return std::string(reinterpret_cast<const char*>(encoded.data()), 28);
}

// "10" or "\"10\"" from 8 to 15; 0 for anything else.
int window_bits(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  if (value == "8" || value == "9") return value.front() - '0';
  if (value.size() == 2 && value[0] == '1' && value[1] >= '0' && value[1] <= '5') return 10 + (value[1] - '0');
  return 0;
}

// One parameter of an offer; false when the offer cannot be kept.
bool take_parameter(std::string_view parameter, deflate_terms& terms) {
  const std::size_t equals = parameter.find('=');
  const std::string_view name = trimmed(parameter.substr(0, equals));
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : trimmed(parameter.substr(equals + 1));
  const bool has_value = equals != std::string_view::npos;
  if (name == "server_no_context_takeover" || name == "client_no_context_takeover") return !has_value;
  if (name == "client_max_window_bits") return !has_value || window_bits(value) > 0;
  if (name != "server_max_window_bits" || window_bits(value) < 9) return false;  // zlib makes no window of 8 bits
  terms = {window_bits(value), true};
  return true;
}

std::optional<deflate_terms> read_offer(std::string_view offer) {
  const auto parts = parts_of(offer, ';');
  if (parts.empty() || parts.front() != "permessage-deflate") return std::nullopt;
  deflate_terms terms;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view name = trimmed(parts[i].substr(0, parts[i].find('=')));
    for (std::size_t j = 1; j < i; ++j) {
      if (name == trimmed(parts[j].substr(0, parts[j].find('=')))) return std::nullopt;
    }
    if (!take_parameter(parts[i], terms)) return std::nullopt;
  }
  return terms;
}

http_response bad_upgrade(std::string message) {
  return error_response(400, std::move(message), "invalid_upgrade");
}

}  // namespace

std::optional<http_response> handshake_refusal(const http_request& request) {
  if (request.method != "GET" || !request.http_1_1) return bad_upgrade("A WebSocket is opened by GET with HTTP/1.1.");
  if (!lists(joined_header(request, "Connection"), "upgrade")) {
    return bad_upgrade("A WebSocket handshake needs 'Connection: Upgrade'.");
  }
  if (request.header("Host").empty()) return bad_upgrade("A WebSocket handshake needs a Host.");
  if (trimmed(request.header("Sec-WebSocket-Version")) != kVersion) {
    auto response = error_response(426, "Version 13 of WebSocket is spoken here.", "upgrade_required");
    response.headers.emplace_back("Upgrade", "websocket");
    response.headers.emplace_back("Sec-WebSocket-Version", kVersion);
    return response;
  }
  const std::string_view key = trimmed(request.header("Sec-WebSocket-Key"));
  const auto nonce = decoded_base64(std::string(key));
  if (key.size() != 24 || !nonce || nonce->size() != 16) {
    return bad_upgrade("Sec-WebSocket-Key must be 16 bytes in base64.");
  }
  return std::nullopt;
}

socket_terms agree(const http_request& request) {
  socket_terms terms;
  terms.accept = accept_of(trimmed(request.header("Sec-WebSocket-Key")));
  terms.subprotocol = choose_subprotocol(joined_header(request, "Sec-WebSocket-Protocol"));
  terms.deflate = choose_deflate(joined_header(request, "Sec-WebSocket-Extensions"));
  return terms;
}

std::string switching_head(const socket_terms& terms) {
  std::string head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
  head += fmt::format("Sec-WebSocket-Accept: {}\r\n", terms.accept);
  if (!terms.subprotocol.empty()) head += fmt::format("Sec-WebSocket-Protocol: {}\r\n", terms.subprotocol);
  if (terms.deflate) {
    head += "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    if (terms.deflate->window_bits_asked) {
      head += fmt::format("; server_max_window_bits={}", terms.deflate->window_bits);
    }
    head += "\r\n";
  }
  return head + "\r\n";
}

std::optional<deflate_terms> choose_deflate(std::string_view offers) {
  for (const std::string_view offer : parts_of(offers, ',')) {
    if (auto terms = read_offer(offer)) return terms;
  }
  return std::nullopt;
}

std::string choose_subprotocol(std::string_view offers) {
  for (const std::string_view offered : parts_of(offers, ',')) {
    for (const std::string_view spoken : kSubprotocols) {
      if (offered == spoken) return std::string(offered);
    }
  }
  return {};
}

std::string key_of_subprotocols(std::string_view offers) {
  for (const std::string_view offered : parts_of(offers, ',')) {
    if (offered.starts_with(kOpenAiKeyPrefix)) return std::string(offered.substr(kOpenAiKeyPrefix.size()));
    if (offered.starts_with(kKeyPrefix)) {
      return decoded_base64(std::string(offered.substr(kKeyPrefix.size()))).value_or(std::string());
    }
  }
  return {};
}

}  // namespace tandem::net

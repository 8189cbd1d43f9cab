#pragma once
/// Answers → bytes of HTTP. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_message.hpp"

namespace tandem::net {

/// How the body's end is known.
struct body_framing {
  enum class kind { length, chunked, until_close } how = kind::length;
  std::size_t length = 0;
};

/// Status line and header fields with the blank line. `close` announces the connection's end.
std::string response_head(const http_response& response, body_framing framing, bool close);
/// One chunk of a chunked body. `bytes` is not empty.
std::string chunk_of(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace tandem::net

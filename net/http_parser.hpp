#pragma once
/// Bytes → http_request, without I/O. Wraps the HTTP parser of Beast and keeps it out of every other file.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "net/http_message.hpp"

namespace tandem::net {

/// Reads one request. Not thread-safe; owner: one connection.
class http_parser {
 public:
  enum class state {
    head,      ///< more bytes of the header are needed
    body,      ///< the header is complete, the body is not
    complete,  ///< take() gives the request
    failed,    ///< status() and message() say why; the connection cannot be used further
  };

  explicit http_parser(std::size_t max_body_bytes);
  ~http_parser();
  http_parser(http_parser&&) noexcept;
  http_parser& operator=(http_parser&&) noexcept;

  /// Takes what it can of `bytes` and returns how many that were. The rest must be offered again, with more behind it.
  std::size_t feed(std::string_view bytes);
  state current() const;
  /// Without the body. Requires state body or complete.
  http_request head() const;
  /// Bytes of the body so far.
  std::size_t body_bytes() const;
  /// Requires state complete; afterwards the parser is ready for the next request.
  http_request take();
  unsigned status() const;             ///< of a failure: 400, 413 or 431
  const std::string& message() const;  ///< of a failure, one sentence

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
  std::size_t max_body_bytes_;
};

}  // namespace tandem::net

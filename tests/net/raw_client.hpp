#pragma once
/// A client of plain bytes over a loopback socket: what a test sends is what goes out. No HTTP library.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace tandem::net::test {

struct raw_response {
  int status = 0;    ///< 0: none came
  std::string head;  ///< status line and fields
  std::string body;  ///< chunks joined
  bool has(std::string_view field) const { return lower(head).find(lower(std::string(field))) != std::string::npos; }
  static std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  }
};

class raw_client {
 public:
  explicit raw_client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~raw_client() { close(); }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  /// False when the peer took no more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Reads until `mark` is in the buffer; false at the connection's end.
  bool read_until(std::string_view mark) {
    while (buffer_.find(mark) == std::string::npos) {
      if (!fill()) return false;
    }
    return true;
  }

  /// Bytes up to and including `mark`, taken out of the buffer; everything there is when the connection ends first.
  std::string take_until(std::string_view mark) {
    const bool found = read_until(mark);
    const std::size_t end = found ? buffer_.find(mark) + mark.size() : buffer_.size();
    return take(end);
  }

  std::string take_exactly(std::size_t count) {
    while (buffer_.size() < count && fill()) {
    }
    return take(std::min(count, buffer_.size()));
  }

  /// Whether the peer has closed (after what it sent was read into the buffer).
  bool at_end() {
    while (fill()) {
    }
    return ended_;
  }
  const std::string& buffer() const { return buffer_; }

  raw_response response(bool head_only = false) {
    raw_response out;
    out.head = take_until("\r\n\r\n");
    if (out.head.size() < 12 || !out.head.ends_with("\r\n\r\n")) return out;
    out.status = std::atoi(out.head.c_str() + 9);
    if (head_only || out.status == 100) return out;
    const std::string fields = raw_response::lower(out.head);
    const std::size_t length = fields.find("content-length: ");
    if (length != std::string::npos) {
      out.body = take_exactly(std::strtoull(fields.c_str() + length + 16, nullptr, 10));
    } else if (fields.find("transfer-encoding: chunked") != std::string::npos) {
      out.body = chunks();
    }
    return out;
  }

  raw_response request(std::string_view method, std::string_view path, std::string_view body = {},
                       std::string_view extra_fields = {}) {
    send(message(method, path, body, extra_fields));
    return response(method == "HEAD");
  }

  static std::string message(std::string_view method, std::string_view path, std::string_view body = {},
                             std::string_view extra_fields = {}) {
    std::string text = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n";
    text += extra_fields;
    if (method == "POST") {
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    }
    text += "\r\n";
    text += body;
    return text;
  }

 private:
  bool fill() {
    char chunk[16384];
    const ssize_t got = ::recv(socket_, chunk, sizeof chunk, 0);
    ended_ = ended_ || got == 0 || (got < 0 && errno == ECONNRESET);
    if (got <= 0) return false;
    buffer_.append(chunk, static_cast<std::size_t>(got));
    return true;
  }

  std::string take(std::size_t count) {
    std::string out = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return out;
  }

  std::string chunks() {
    std::string joined;
    while (true) {
      const std::string size_line = take_until("\r\n");
      const std::size_t size = std::strtoull(size_line.c_str(), nullptr, 16);
      if (size == 0) {
        take_until("\r\n");
        return joined;
      }
      joined += take_exactly(size);
      take_until("\r\n");
    }
  }

  int socket_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace tandem::net::test

#include "net/http_parser.hpp"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::net {
namespace http = boost::beast::http;

struct http_parser::impl {
  http::request_parser<http::string_body> parser;
  state current = state::head;
  unsigned status = 0;
  std::string message;

  bool repeats_length();
  void fail(const boost::beast::error_code& reason, std::size_t max_body_bytes);
};

void http_parser::impl::fail(const boost::beast::error_code& reason, std::size_t max_body_bytes) {
  current = state::failed;
  if (reason == http::error::body_limit) {
    status = 413;
    message = fmt::format("The body is larger than {} bytes; send a smaller one.", max_body_bytes);
  } else if (reason == http::error::header_limit) {
    status = 431;
    message = fmt::format("The header is larger than {} bytes; send fewer or shorter fields.", limits::kMaxHeaderBytes);
  } else {
    status = 400;
    message = fmt::format("The HTTP request is malformed ({}); check its header and framing.", reason.message());
  }
}

// Beast takes equal repeated lengths as one; a proxy in front may not: refused, as RFC 9112, 6.3 allows.
bool http_parser::impl::repeats_length() {
  const auto& head = parser.get();
  const auto lengths = head.count(http::field::content_length);
  if (lengths < 2 && head[http::field::content_length].find(',') == boost::beast::string_view::npos) return false;
  current = state::failed;
  status = 400;
  message = "The header has Content-Length more than once; send it once.";
  return true;
}

http_parser::http_parser(std::size_t max_body_bytes)
    : impl_(std::make_unique<impl>()), max_body_bytes_(max_body_bytes) {
  impl_->parser.eager(true);
  impl_->parser.header_limit(static_cast<std::uint32_t>(limits::kMaxHeaderBytes));
  impl_->parser.body_limit(max_body_bytes);
}

http_parser::~http_parser() = default;
http_parser::http_parser(http_parser&&) noexcept = default;
http_parser& http_parser::operator=(http_parser&&) noexcept = default;

std::size_t http_parser::feed(std::string_view bytes) {
  TANDEM_ASSERT(impl_->current != state::complete);
  if (impl_->current == state::failed) return 0;
  std::size_t used = 0;
  while (used < bytes.size() && !impl_->parser.is_done()) {
    boost::beast::error_code reason;
    const std::size_t taken =
        impl_->parser.put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), reason);
    used += taken;
    if (reason == http::error::need_more) break;
    if (reason) {
      impl_->fail(reason, max_body_bytes_);
      return used;
    }
    if (taken == 0) break;
  }
  if (impl_->current == state::head && impl_->parser.is_header_done() && impl_->repeats_length()) return used;
  if (impl_->parser.is_done()) {
    impl_->current = state::complete;
  } else if (impl_->parser.is_header_done()) {
    impl_->current = state::body;
  }
  return used;
}

http_parser::state http_parser::current() const {
  return impl_->current;
}
std::size_t http_parser::body_bytes() const {
  return impl_->parser.get().body().size();
}
unsigned http_parser::status() const {
  return impl_->status;
}
const std::string& http_parser::message() const {
  return impl_->message;
}

namespace {

std::string path_of(std::string_view target) {
  if (const auto scheme = target.find("://"); !target.starts_with('/') && scheme != std::string_view::npos) {
    const auto slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  return std::string(target.substr(0, target.find('?')));
}

std::string query_of(std::string_view target) {
  const std::size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string() : std::string(target.substr(mark + 1));
}

template <class Text>
std::string copy(const Text& text) {
  return std::string(text.data(), text.size());
}

template <class Message>
http_request translate(const Message& message) {
  http_request request;
  request.method = copy(message.method_string());
  const auto target = message.target();
  request.path = path_of(std::string_view(target.data(), target.size()));
  request.query = query_of(std::string_view(target.data(), target.size()));
  for (const auto& field : message) request.headers.emplace_back(copy(field.name_string()), copy(field.value()));
  request.http_1_1 = message.version() >= 11;
  request.keep_alive = message.keep_alive();
  request.expects_continue = equal_ignoring_case(request.header("Expect"), "100-continue") && request.http_1_1;
  request.upgrades_to_websocket = http::token_list{message[http::field::upgrade]}.exists("websocket");
  return request;
}

}  // namespace

http_request http_parser::head() const {
  TANDEM_ASSERT(impl_->parser.is_header_done());
  return translate(impl_->parser.get());
}

http_request http_parser::take() {
  TANDEM_ASSERT(impl_->current == state::complete);
  auto message = impl_->parser.release();
  http_request request = translate(message);
  request.body = std::move(message.body());
  *this = http_parser(max_body_bytes_);
  return request;
}

}  // namespace tandem::net

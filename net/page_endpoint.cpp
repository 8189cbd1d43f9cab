// GET /, /page/…, /docs and /openapi.json: files that travel inside the binary.

#include <fmt/format.h>

#include "net/endpoints.hpp"
#include "net/openai_answers.hpp"
#include "net/page_files.hpp"

namespace tandem::net {
namespace {

// Scripts, styles and connections of this server only; nothing inline, nothing framed, nothing sent elsewhere.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

std::string_view name_of_path(std::string_view path) {
  constexpr std::string_view kFolder = "/page/";
  if (path == "/") return "index.html";
  if (path == "/docs") return "docs.html";
  if (path == "/openapi.json") return "openapi.json";
  return path.starts_with(kFolder) ? path.substr(kFolder.size()) : std::string_view{};
}

const page_file* find_file(std::string_view name) {
  for (const page_file& each : page_files()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::string_view content_type_of(std::string_view name) {
  const std::string_view ending = name.substr(name.rfind('.') + 1);
  if (ending == "html") return "text/html; charset=utf-8";
  if (ending == "css") return "text/css; charset=utf-8";
  if (ending == "js") return "text/javascript; charset=utf-8";
  if (ending == "svg") return "image/svg+xml";
  return "application/json";
}

// RFC 9110, 13.1.2: a list of tags, or any. A tag's quotation marks keep it from matching inside another one.
bool has_tag(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || if_none_match.find(etag) != std::string_view::npos;
}

http_response file_response(const page_file& file, std::string_view if_none_match) {
  http_response response;
  if (has_tag(if_none_match, file.etag)) response.status = 304;
  response.content_type = content_type_of(file.name);
  response.body = file.bytes;
  response.headers = {{"ETag", std::string(file.etag)},
                      {"Cache-Control", "no-cache"},  // kept, and asked for again: a new binary has new files
                      {"Content-Security-Policy", std::string(kContentSecurityPolicy)},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}};
  return response;
}

}  // namespace

answered answer_page(io_lane&, http_request& request, std::weak_ptr<response_channel> channel) {
  const page_file* file = find_file(name_of_path(request.path));
  http_response response =
      file != nullptr
          ? file_response(*file, request.header("If-None-Match"))
          : error_response(404, fmt::format("There is no '{}' here.", request.path.substr(0, 256)), "not_found");
  if (const auto open = channel.lock()) open->send(std::move(response));
  return nullptr;
}

}  // namespace tandem::net

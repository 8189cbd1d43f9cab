// Feeds bytes to every parser of the edge. The first byte chooses the parser, the rest is what a client sent.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/assert.hpp"
#include "net/http_parser.hpp"
#include "net/json_text.hpp"
#include "net/openai_requests.hpp"
#include "net/responses/client_event.hpp"
#include "net/websocket/frame_reader.hpp"
#include "net/websocket/handshake.hpp"

namespace {

using namespace tandem::net;

const request_facts& facts() {
  static const request_facts known{{"m"}, 1000, 2048, 8, {true, true, true}, true, tool_call_format::hermes};
  return known;
}

template <class Parsed>
void check(const Parsed& parsed) {
  if (parsed) return;
  TANDEM_ASSERT(!parsed.error().message.empty());
  // What a client sent may be quoted: the message must still make valid JSON.
  std::string quoted;
  append_json_string(quoted, parsed.error().message);
  TANDEM_ASSERT(is_utf8(quoted));
}

void parse_http(std::string_view bytes) {
  http_parser parser(1000);
  while (!bytes.empty()) {
    bytes.remove_prefix(parser.feed(bytes));
    if (parser.current() != http_parser::state::complete) return;
    TANDEM_ASSERT(parser.take().body.size() <= 1000);
  }
}

void check_event(const client_event& event) {
  if (!event.problem) return;
  TANDEM_ASSERT(!event.problem->message.empty());
}

// In pieces of a size that the first byte says; a reader that failed is not fed again.
void read_frames(std::string_view bytes) {
  constexpr std::size_t kMaxMessage = 1000;
  if (bytes.empty()) return;
  const std::size_t piece = 1 + static_cast<unsigned char>(bytes.front());
  frame_reader reader(kMaxMessage, piece % 2 == 0);
  bytes.remove_prefix(1);
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (!part.empty()) {
      const auto happened = reader.feed(part);
      if (happened == frame_reader::event::failed) return;
      const std::string payload = reader.take();
      TANDEM_ASSERT(payload.size() <= kMaxMessage);
      TANDEM_ASSERT(happened != frame_reader::event::text || is_utf8(payload));
    }
  }
}

void read_offers(std::string_view offers) {
  const auto terms = choose_deflate(offers);
  TANDEM_ASSERT(!terms || (terms->window_bits >= 9 && terms->window_bits <= 15));
  const std::string protocol = choose_subprotocol(offers);
  TANDEM_ASSERT(protocol.find("api-key") == std::string::npos);
  key_of_subprotocols(offers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 11) {
    case 0:
      check(parse_generate(bytes, {}, facts()));
      break;
    case 1:
      check(parse_completion(bytes, "100", facts()));
      break;
    case 2:
      check(parse_chat(bytes, {}, facts()));
      break;
    case 3:
      check(parse_frame(bytes, facts()));
      break;
    case 4:
      check(parse_tokenize(bytes, facts()));
      break;
    case 5:
      check(parse_detokenize(bytes, facts()));
      break;
    case 6:
      check(parse_response(bytes, {}, facts()));
      break;
    case 7:
      check_event(parse_client_event(bytes, facts()));
      break;
    case 8:
      read_frames(bytes);
      break;
    case 9:
      read_offers(bytes);
      break;
    default:
      parse_http(bytes);
  }
  return 0;
}

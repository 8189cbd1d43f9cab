// Feeds bytes to every parser of the edge. The first byte chooses the parser, the rest is what a client sent.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/assert.hpp"
#include "net/http_parser.hpp"
#include "net/json_text.hpp"
#include "net/openai_requests.hpp"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
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
    default:
      parse_http(bytes);
  }
  return 0;
}

// Feeds text to the parsers of tool calls. The first byte chooses the parser and how the text is cut.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/json_document.hpp"
#include "net/json_text.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace {

using namespace tandem::net;
using kind = tool_event::kind;

tool_events read(const tool_calling& calling, std::string_view text, std::size_t piece) {
  const auto parser = make_tool_call_parser(calling);
  tool_events all;
  const auto take = [&all](const tool_events& events) {
    for (const tool_event& event : events) add_event(all, event.what, event.text);
  };
  for (std::size_t at = 0; at < text.size(); at += piece) take(parser->feed(text.substr(at, piece)));
  take(parser->finish());
  return all;
}

bool is_object(std::string_view json) {
  const auto document = tandem::net::json_document::parse(json, tandem::limits::kMaxJsonDepth);
  return document && document->root().is_object();
}

// Begin, arguments, one end: nothing else in between.
void check_order(const tool_events& events, bool text_is_utf8) {
  bool open = false;
  std::string arguments;
  for (const tool_event& event : events) {
    TANDEM_ASSERT(open == (event.what != kind::content && event.what != kind::begin));
    if (event.what == kind::begin) arguments.clear();
    if (event.what == kind::arguments) arguments += event.text;
    // What JSON's syntax lets through beside it: halves of surrogate pairs and numbers beyond 64 bits.
    const bool doubtful =
        arguments.find('\\') != std::string::npos || arguments.find_first_of("0123456789") != std::string::npos;
    if (event.what == kind::complete) TANDEM_ASSERT(!text_is_utf8 || doubtful || is_object(arguments));
    open = event.what == kind::begin || event.what == kind::arguments;
  }
  TANDEM_ASSERT(!open);
}

// No byte is made up or moved, and without a call none is missing.
void check_words(const tool_message& message, std::string_view text) {
  if (message.calls.empty()) {
    TANDEM_ASSERT(message.content == text);
    return;
  }
  std::size_t at = 0;
  for (const char byte : message.content) {
    at = text.find(byte, at);
    TANDEM_ASSERT(at != std::string_view::npos);
    ++at;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool hermes = data[0] % 2 == 0;
  const tool_calling calling{
      hermes ? tool_call_format::hermes : tool_call_format::llama3_json, {"f", "get_weather"}, true};
  const tool_events whole = read(calling, text, size);
  const tool_events cut = read(calling, text, 1 + data[0] / 2 % 16);
  TANDEM_ASSERT(whole.size() == cut.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    TANDEM_ASSERT(whole[i].what == cut[i].what && whole[i].text == cut[i].text);
  check_order(whole, is_utf8(text));
  check_words(parse_tool_message(text, calling), text);
  return 0;
}

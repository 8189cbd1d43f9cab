#include "net/tool_calls/tool_call_parser.hpp"

#include <utility>

#include "core/assert.hpp"

namespace tandem::net {

using kind = tool_event::kind;

tool_call_format format_of_template(std::string_view chat_template) {
  const auto says = [&](std::string_view text) { return chat_template.find(text) != std::string_view::npos; };
  if (says("<tool_call>")) return tool_call_format::hermes;
  if (says("<|python_tag|>") || says("\"parameters\": dictionary of argument")) return tool_call_format::llama3_json;
  return tool_call_format::none;
}

tool_events tool_call_parser::feed(std::string_view text) {
  tool_events events;
  read(text, events);
  return allowed(std::move(events));
}

tool_events tool_call_parser::finish() {
  tool_events events;
  end(events);
  return allowed(std::move(events));
}

tool_events tool_call_parser::allowed(tool_events events) {
  if (calling_.parallel) return events;
  tool_events kept;
  for (tool_event& event : events) {
    const kind what = event.what;
    if (what == kind::content || !past_first_call_) kept.push_back(std::move(event));
    past_first_call_ = past_first_call_ || what == kind::complete;
  }
  return kept;
}

std::unique_ptr<tool_call_parser> make_tool_call_parser(const tool_calling& calling) {
  TANDEM_ASSERT(calling.wanted());
  if (calling.format == tool_call_format::hermes) return make_hermes_parser(calling);
  return make_llama3_parser(calling);
}

namespace {

void take(tool_message& message, tool_event event) {
  switch (event.what) {
    case kind::content:
      message.content += event.text;
      break;
    case kind::begin:
      message.calls.push_back({std::move(event.text), {}});
      break;
    case kind::arguments:
      message.calls.back().arguments += event.text;
      break;
    case kind::complete:
      break;
    case kind::malformed:
      message.calls.pop_back();
      message.content += event.text;
      break;
  }
}

}  // namespace

tool_message parse_tool_message(std::string_view text, const tool_calling& calling) {
  const auto parser = make_tool_call_parser(calling);
  tool_message message;
  for (tool_event& event : parser->feed(text)) take(message, std::move(event));
  for (tool_event& event : parser->finish()) take(message, std::move(event));
  return message;
}

}  // namespace tandem::net

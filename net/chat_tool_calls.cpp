#include "net/chat_tool_calls.hpp"

#include <fmt/format.h>

#include <utility>

namespace tandem::net {
namespace {

using kind = tool_event::kind;

std::string call_id(std::string_view stem, int number) {
  return fmt::format("{}{}", stem, number);
}

void write_function(json_writer& out, std::string_view id, std::string_view name, std::string_view arguments) {
  out.key("id").string(id).key("type").string("function").key("function").begin_object();
  out.key("name").string(name).key("arguments").string(arguments).end_object();
}

bool is_told(const tool_event& event) {
  return event.what != kind::complete && event.what != kind::malformed;
}

}  // namespace

std::vector<std::string> chat_call_stream::feed(std::string_view text, bool ended) {
  std::vector<std::string> deltas;
  const auto tell = [&](const tool_events& events) {
    for (const tool_event& event : events)
      if (is_told(event)) deltas.push_back(delta_of(event));
  };
  tell(parser_->feed(text));
  if (ended) tell(parser_->finish());
  return deltas;
}

std::string chat_call_stream::delta_of(const tool_event& event) {
  json_writer out;
  out.begin_object();
  if (event.what == kind::content) {
    out.key("content").string(event.text).end_object();
    return out.take();
  }
  if (event.what == kind::begin) ++calls_;
  const int number = calls_ - 1;
  out.key("tool_calls").begin_array().begin_object().key("index").integer(number);
  if (event.what == kind::begin) {
    write_function(out, call_id(id_stem_, number), event.text, {});
  } else {
    out.key("function").begin_object().key("arguments").string(event.text).end_object();
  }
  out.end_object().end_array().end_object();
  return out.take();
}

void write_tool_message(json_writer& out, const tool_message& message, std::string_view id_stem) {
  out.begin_object().key("role").string("assistant").key("content");
  if (message.content.empty() && !message.calls.empty()) {
    out.null();
  } else {
    out.string(message.content);
  }
  if (!message.calls.empty()) {
    out.key("tool_calls").begin_array();
    int number = 0;
    for (const tool_message::call& call : message.calls) {
      out.begin_object();
      write_function(out, call_id(id_stem, number++), call.name, call.arguments);
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
}

}  // namespace tandem::net

#include "net/tool_calls/call_reader.hpp"

#include <algorithm>
#include <optional>

#include "config/edge_limits.hpp"
#include "config/limits.hpp"
#include "net/json_document.hpp"

namespace tandem::net {
namespace {

using kind = tool_event::kind;

bool is_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

// Some models write the arguments as JSON inside a string.
std::optional<std::string> opened_object(std::string_view value) {
  if (value.empty() || value == "null") return "{}";
  const auto outer = json_document::parse(value, limits::kMaxJsonDepth);
  if (!outer) return std::nullopt;
  if (outer->root().is_object()) return std::string(value);
  const auto text = as_string(outer->root());
  if (!text) return std::nullopt;
  const auto inner = json_document::parse(*text, limits::kMaxJsonDepth);
  if (!inner || !inner->root().is_object()) return std::nullopt;
  return std::string(*text);
}

}  // namespace

call_reader::state call_reader::feed(char byte, tool_events& out) {
  if (raw_.size() >= limits::kMaxToolCallBytes) return state::broken;
  const state next = at_ == place::in_key  ? in_key(byte)
                     : at_ == place::value ? in_value(byte, out)
                                           : outside_value(byte, out);
  if (next != state::broken) raw_ += byte;
  return next;
}

call_reader::state call_reader::outside_value(char byte, tool_events& out) {
  if (is_space(byte)) return state::open;
  switch (at_) {
    case place::before:
      at_ = place::first_key;
      return byte == '{' ? state::open : state::broken;
    case place::first_key:
    case place::key:
      return begin_key(byte);
    case place::colon:
      if (byte != ':') return state::broken;
      at_ = place::value;
      scanner_ = {};
      value_.clear();
      return state::open;
    default:
      if (byte == '}') return end_object(out);
      at_ = place::key;
      return byte == ',' ? state::open : state::broken;
  }
}

call_reader::state call_reader::begin_key(char byte) {
  if (byte != '"') return state::broken;
  key_.clear();
  at_ = place::in_key;
  return state::open;
}

// A key with escapes is none of ours, whatever it says.
call_reader::state call_reader::in_key(char byte) {
  if (static_cast<unsigned char>(byte) < 0x20 || byte == '\\') return state::broken;
  if (byte != '"') {
    key_ += byte;
    return state::open;
  }
  at_ = place::colon;
  if (name_first_ && !named_ && key_ != "name") return state::broken;
  const bool twice = (key_ == "name" && named_) || (is_arguments() && has_arguments_);
  return twice ? state::broken : state::open;
}

call_reader::state call_reader::in_value(char byte, tool_events& out) {
  const json_scanner::step step = scanner_.feed(byte);
  if (step == json_scanner::step::broken) return state::broken;
  if (step == json_scanner::step::past) {
    const state ended = end_value(out);
    return ended == state::open ? outside_value(byte, out) : ended;
  }
  const bool first = value_.empty() && !streams_ && !is_space(byte);
  if (first && byte == '{' && is_arguments() && named_) {
    begin(out);
    streams_ = true;
  }
  if (streams_) {
    add_event(out, kind::arguments, {&byte, 1});
  } else if (!value_.empty() || first) {
    value_ += byte;
  }
  return step == json_scanner::step::last ? end_value(out) : state::open;
}

call_reader::state call_reader::end_value(tool_events&) {
  at_ = place::after_value;
  if (key_ == "name") return take_name() ? state::open : state::broken;
  if (!is_arguments()) return state::open;
  has_arguments_ = true;
  if (!streams_) arguments_ = value_;
  streams_ = false;
  return state::open;
}

bool call_reader::take_name() {
  if (value_.size() < 2 || value_.front() != '"') return false;
  name_ = value_.substr(1, value_.size() - 2);
  named_ = offers(name_);
  return named_;
}

bool call_reader::offers(std::string_view name) const {
  return std::find(offered_->begin(), offered_->end(), name) != offered_->end();
}

void call_reader::begin(tool_events& out) {
  begun_ = true;
  add_event(out, kind::begin, name_);
}

call_reader::state call_reader::end_object(tool_events& out) {
  if (!named_) return state::broken;
  if (!begun_) {
    const auto arguments = opened_object(arguments_);
    if (!arguments) return state::broken;
    begin(out);
    add_event(out, kind::arguments, *arguments);
  }
  add_event(out, kind::complete, {});
  return state::complete;
}

}  // namespace tandem::net

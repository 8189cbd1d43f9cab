// <tool_call>{"name": …, "arguments": …}</tool_call>, as Qwen and the Hermes models write calls.

#include <optional>

#include "config/edge_limits.hpp"
#include "net/tool_calls/call_reader.hpp"
#include "net/tool_calls/text_cursor.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {
namespace {

using kind = tool_event::kind;

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";

class hermes_parser final : public tool_call_parser {
 public:
  explicit hermes_parser(const tool_calling& calling) : tool_call_parser(calling) {}

 private:
  // `closing`: behind a whole call, before its end tag. `malformed`: inside a call that was begun and broke.
  enum class place { words, thought, call, closing, malformed };

  void read(std::string_view text, tool_events& out) override {
    cursor_.add(text);
    while (step(out)) {
    }
  }
  void end(tool_events& out) override;

  bool step(tool_events& out);
  bool in_words(tool_events& out);
  bool in_thought(tool_events& out);
  bool in_call(tool_events& out);
  bool in_closing();
  bool in_malformed(tool_events& out);
  void say(tool_events& out, std::string_view words);
  void open_call(tool_events& out, std::size_t tag);
  void give_back(tool_events& out);
  void end_malformed(tool_events& out);

  text_cursor cursor_;
  std::optional<call_reader> reader_;
  std::string opening_;  // white space and tag before the call
  std::string broken_;   // of a malformed call: everything so far
  place at_ = place::words;
  bool behind_call_ = false;  // nothing but white space since a call
};

// Gives whether it got anywhere.
bool hermes_parser::step(tool_events& out) {
  switch (at_) {
    case place::words:
      return in_words(out);
    case place::thought:
      return in_thought(out);
    case place::call:
      return in_call(out);
    case place::closing:
      return in_closing();
    case place::malformed:
      return in_malformed(out);
  }
  return false;
}

void hermes_parser::say(tool_events& out, std::string_view words) {
  if (words.empty()) return;
  behind_call_ = false;
  add_event(out, kind::content, words);
}

bool hermes_parser::in_words(tool_events& out) {
  const std::string_view rest = cursor_.rest();
  for (std::size_t at = rest.find('<'); at != std::string_view::npos; at = rest.find('<', at + 1)) {
    if (rest.substr(at).starts_with(kOpen)) {
      open_call(out, at);
      return true;
    }
    if (rest.substr(at).starts_with(kThinkOpen)) {
      say(out, cursor_.take(at + kThinkOpen.size()));
      at_ = place::thought;
      return true;
    }
  }
  const std::size_t tag = std::max(begun_at_end(rest, kOpen), begun_at_end(rest, kThinkOpen));
  const std::size_t words = rest.size() - tag - spaces_at_end(rest.substr(0, rest.size() - tag));
  say(out, cursor_.take(words));
  return false;
}

void hermes_parser::open_call(tool_events& out, std::size_t tag) {
  const std::size_t spaces = spaces_at_end(cursor_.rest().substr(0, tag));
  say(out, cursor_.take(tag - spaces));
  opening_ = cursor_.take(spaces + kOpen.size());
  reader_.emplace(offered());
  at_ = place::call;
}

bool hermes_parser::in_thought(tool_events& out) {
  const std::string_view rest = cursor_.rest();
  const std::size_t end = rest.find(kThinkClose);
  if (end == std::string_view::npos) {
    say(out, cursor_.take(rest.size() - begun_at_end(rest, kThinkClose)));
    return false;
  }
  say(out, cursor_.take(end + kThinkClose.size()));
  at_ = place::words;
  return true;
}

bool hermes_parser::in_call(tool_events& out) {
  while (!cursor_.empty()) {
    const auto state = reader_->feed(cursor_.rest().front(), out);
    if (state == call_reader::state::broken) {
      give_back(out);
      return true;
    }
    cursor_.take(1);
    if (state == call_reader::state::open) continue;
    at_ = place::closing;
    behind_call_ = true;
    return true;
  }
  return false;
}

// The byte that broke the call is still ahead.
void hermes_parser::give_back(tool_events& out) {
  broken_ = opening_ + reader_->raw();
  if (reader_->begun()) {
    at_ = place::malformed;
    return;
  }
  say(out, broken_);
  at_ = place::words;
}

bool hermes_parser::in_closing() {
  const std::string_view rest = cursor_.rest();
  const std::size_t spaces = std::min(rest.find_first_not_of(kSpaces), rest.size());
  const std::string_view tag = rest.substr(spaces);
  if (spaces <= limits::kMaxHeldSpaceBytes && kClose.starts_with(tag) && tag != kClose) return false;
  if (tag.starts_with(kClose)) cursor_.take(spaces + kClose.size());
  at_ = place::words;
  return true;
}

bool hermes_parser::in_malformed(tool_events& out) {
  const std::string_view rest = cursor_.rest();
  const std::size_t end = rest.find(kClose);
  const bool found = end != std::string_view::npos;
  const std::string_view more = cursor_.take(found ? end : rest.size() - begun_at_end(rest, kClose));
  add_event(out, kind::arguments, more);
  broken_ += more;
  if (!found && broken_.size() < limits::kMaxToolCallBytes) return false;
  if (found) broken_ += cursor_.take(kClose.size());
  end_malformed(out);
  return true;
}

void hermes_parser::end_malformed(tool_events& out) {
  add_event(out, kind::malformed, broken_);
  behind_call_ = false;
  at_ = place::words;
}

void hermes_parser::end(tool_events& out) {
  const std::string_view rest = cursor_.take(cursor_.rest().size());
  switch (at_) {
    case place::words:
      if (behind_call_ && rest.find_first_not_of(kSpaces) == std::string_view::npos) return;
      return say(out, rest);
    case place::thought:
      return say(out, rest);
    case place::call:
      give_back(out);
      if (at_ == place::malformed) end_malformed(out);
      return;
    case place::closing:
      return;  // at most a part of the end tag
    case place::malformed:
      add_event(out, kind::arguments, rest);
      broken_ += rest;
      return end_malformed(out);
  }
}

}  // namespace

std::unique_ptr<tool_call_parser> make_hermes_parser(const tool_calling& calling) {
  return std::make_unique<hermes_parser>(calling);
}

}  // namespace tandem::net

// <tool_call>{"name": …, "arguments": …}</tool_call>, as Qwen and the Hermes models write calls. Small ones forget the
// tags and write the object in a block of Markdown or alone.

#include <optional>

#include "config/edge_limits.hpp"
#include "net/tool_calls/call_reader.hpp"
#include "net/tool_calls/text_cursor.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {
namespace {

using kind = tool_event::kind;

/// What stands around a call.
struct frame {
  std::string_view open;
  std::string_view close;  ///< empty: nothing
};
constexpr frame kTags{"<tool_call>", "</tool_call>"};
constexpr frame kBlock{"```json", "```"};
constexpr frame kAlone{"", ""};

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
  bool begins_alone() const;
  bool open_at(tool_events& out, std::size_t at);
  void open_call(tool_events& out, const frame& around, std::size_t at);
  void give_back(tool_events& out);
  void end_malformed(tool_events& out);

  text_cursor cursor_;
  std::optional<call_reader> reader_;
  frame around_ = kTags;  // of the call
  std::string opening_;   // white space and tag before the call
  std::string broken_;    // of a malformed call: everything so far
  place at_ = place::words;
  bool said_ = false;         // words, since the beginning or the last call
  bool behind_call_ = false;  // a call came before
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
  said_ = true;
  add_event(out, kind::content, words);
}

bool hermes_parser::in_words(tool_events& out) {
  const std::string_view rest = cursor_.rest();
  if (begins_alone()) {
    open_call(out, kAlone, rest.find('{'));
    return true;
  }
  constexpr std::string_view kFirst = "<`";
  for (std::size_t at = rest.find_first_of(kFirst); at != std::string_view::npos;
       at = rest.find_first_of(kFirst, at + 1))
    if (open_at(out, at)) return true;
  std::size_t tag = 0;
  for (const std::string_view open : {kTags.open, kBlock.open, kThinkOpen})
    tag = std::max(tag, begun_at_end(rest, open));
  const std::size_t words = rest.size() - tag - spaces_at_end(rest.substr(0, rest.size() - tag));
  say(out, cursor_.take(words));
  return false;
}

bool hermes_parser::begins_alone() const {
  const std::size_t first = cursor_.rest().find_first_not_of(kSpaces);
  return !tags_only() && !said_ && first <= limits::kMaxHeldSpaceBytes && cursor_.rest()[first] == '{';
}

bool hermes_parser::open_at(tool_events& out, std::size_t at) {
  const std::string_view tag = cursor_.rest().substr(at);
  if (tag.starts_with(kThinkOpen)) {
    say(out, cursor_.take(at + kThinkOpen.size()));
    at_ = place::thought;
    return true;
  }
  for (const frame& around : {kTags, kBlock}) {
    if (!tag.starts_with(around.open) || (tags_only() && around.open != kTags.open)) continue;
    open_call(out, around, at);
    return true;
  }
  return false;
}

void hermes_parser::open_call(tool_events& out, const frame& around, std::size_t at) {
  const std::size_t spaces = spaces_at_end(cursor_.rest().substr(0, at));
  say(out, cursor_.take(at - spaces));
  around_ = around;
  opening_ = cursor_.take(spaces + around.open.size());
  reader_.emplace(offered(), around.open != kTags.open);
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
    said_ = false;
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
  const std::string_view close = around_.close;
  const std::string_view rest = cursor_.rest();
  const std::size_t spaces = std::min(rest.find_first_not_of(kSpaces), rest.size());
  const std::string_view tag = rest.substr(spaces);
  if (spaces <= limits::kMaxHeldSpaceBytes && close.starts_with(tag) && tag != close) return false;
  if (!close.empty() && tag.starts_with(close)) cursor_.take(spaces + close.size());
  at_ = place::words;
  return true;
}

bool hermes_parser::in_malformed(tool_events& out) {
  const std::string_view rest = cursor_.rest();
  const std::string_view close = around_.close;
  const std::size_t end = close.empty() ? std::string_view::npos : rest.find(close);
  const bool found = end != std::string_view::npos;
  const std::string_view more = cursor_.take(found ? end : rest.size() - begun_at_end(rest, close));
  add_event(out, kind::arguments, more);
  broken_ += more;
  if (!found && broken_.size() < limits::kMaxToolCallBytes) return false;
  if (found) broken_ += cursor_.take(close.size());
  end_malformed(out);
  return true;
}

void hermes_parser::end_malformed(tool_events& out) {
  add_event(out, kind::malformed, broken_);
  said_ = true;
  at_ = place::words;
}

void hermes_parser::end(tool_events& out) {
  const std::string_view rest = cursor_.take(cursor_.rest().size());
  switch (at_) {
    case place::words:
      if (behind_call_ && !said_ && rest.find_first_not_of(kSpaces) == std::string_view::npos) return;
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

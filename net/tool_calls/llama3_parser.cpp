// {"name": …, "parameters": …}, several with ';' between them, as Llama 3 writes calls: then nothing else is said.

#include <optional>

#include "config/edge_limits.hpp"
#include "net/tool_calls/call_reader.hpp"
#include "net/tool_calls/text_cursor.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {
namespace {

using kind = tool_event::kind;

constexpr std::string_view kPythonTag = "<|python_tag|>";

class llama3_parser final : public tool_call_parser {
 public:
  explicit llama3_parser(const tool_calling& calling) : tool_call_parser(calling) {}

 private:
  // `start`: nothing but white space, thoughts and the tag so far. `between`: behind a call. `words`: to the end.
  enum class place { start, thought, call, between, words, malformed };

  void read(std::string_view text, tool_events& out) override {
    cursor_.add(text);
    while (step(out)) {
    }
  }
  void end(tool_events& out) override;

  bool step(tool_events& out);
  bool in_start(tool_events& out);
  bool in_thought(tool_events& out);
  bool in_call(tool_events& out);
  bool in_between();
  bool in_malformed(tool_events& out);
  void hold(std::size_t bytes);
  void open_call();
  void give_back(tool_events& out);
  void say_held(tool_events& out);

  text_cursor cursor_;
  std::optional<call_reader> reader_;
  std::string held_;    // taken before a call, not said yet
  std::string broken_;  // of a malformed call: everything so far
  place at_ = place::start;
  bool tagged_ = false;
};

// Gives whether it got anywhere.
bool llama3_parser::step(tool_events& out) {
  switch (at_) {
    case place::start:
      return in_start(out);
    case place::thought:
      return in_thought(out);
    case place::call:
      return in_call(out);
    case place::between:
      return in_between();
    case place::words:
      say_held(out);
      add_event(out, kind::content, cursor_.take(cursor_.rest().size()));
      return false;
    case place::malformed:
      return in_malformed(out);
  }
  return false;
}

void llama3_parser::say_held(tool_events& out) {
  add_event(out, kind::content, held_);
  held_.clear();
}

void llama3_parser::hold(std::size_t bytes) {
  held_ += cursor_.take(bytes);
}

bool llama3_parser::in_start(tool_events& out) {
  hold(std::min(cursor_.rest().find_first_not_of(kSpaces), cursor_.rest().size()));
  const std::string_view rest = cursor_.rest();
  const bool may_wait = held_.size() <= limits::kMaxHeldSpaceBytes;
  if (rest.empty() && may_wait) return false;
  if (rest.starts_with('{')) {
    open_call();
  } else if (rest.starts_with(kPythonTag) && !tagged_) {
    hold(kPythonTag.size());
    tagged_ = true;
  } else if (rest.starts_with(kThinkOpen)) {
    say_held(out);
    at_ = place::thought;
  } else if (may_wait && (kPythonTag.starts_with(rest) || kThinkOpen.starts_with(rest))) {
    return false;
  } else {
    at_ = place::words;
  }
  return true;
}

bool llama3_parser::in_thought(tool_events& out) {
  const std::string_view rest = cursor_.rest();
  const std::size_t end = rest.find(kThinkClose);
  const bool found = end != std::string_view::npos;
  add_event(out, kind::content,
            cursor_.take(found ? end + kThinkClose.size() : rest.size() - begun_at_end(rest, kThinkClose)));
  if (found) at_ = place::start;
  return found;
}

void llama3_parser::open_call() {
  reader_.emplace(offered(), true);
  at_ = place::call;
}

bool llama3_parser::in_call(tool_events& out) {
  while (!cursor_.empty()) {
    const auto state = reader_->feed(cursor_.rest().front(), out);
    if (state == call_reader::state::broken) {
      give_back(out);
      return true;
    }
    cursor_.take(1);
    if (state == call_reader::state::open) continue;
    held_.clear();
    at_ = place::between;
    return true;
  }
  return false;
}

// The byte that broke the call is still ahead.
void llama3_parser::give_back(tool_events& out) {
  broken_ = held_ + reader_->raw();
  held_.clear();
  if (reader_->begun()) {
    at_ = place::malformed;
    return;
  }
  add_event(out, kind::content, broken_);
  at_ = place::words;
}

bool llama3_parser::in_malformed(tool_events& out) {
  const std::string_view more = cursor_.take(cursor_.rest().size());
  add_event(out, kind::arguments, more);
  broken_ += more;
  if (broken_.size() < limits::kMaxToolCallBytes) return false;
  add_event(out, kind::malformed, broken_);
  at_ = place::words;
  return true;
}

// White space, a separator, white space, the next call.
bool llama3_parser::in_between() {
  const bool separated = held_.find(';') != std::string::npos;
  const std::string_view expected = separated ? kSpaces : " \t\r\n;";
  const std::string_view rest = cursor_.rest();
  if (held_.size() > limits::kMaxHeldSpaceBytes) {
    at_ = place::words;
  } else if (rest.empty()) {
    return false;
  } else if (separated && rest.front() == '{') {
    open_call();
  } else if (expected.find(rest.front()) != std::string_view::npos) {
    hold(1);
  } else {
    at_ = place::words;
  }
  return true;
}

void llama3_parser::end(tool_events& out) {
  const bool only_spaces = held_.find_first_not_of(kSpaces) == std::string::npos;
  if (at_ == place::between && only_spaces) return;
  if (at_ == place::call) give_back(out);
  if (at_ == place::malformed) {
    add_event(out, kind::arguments, cursor_.rest());
    broken_ += cursor_.rest();
    add_event(out, kind::malformed, broken_);
    return;
  }
  say_held(out);
  add_event(out, kind::content, cursor_.rest());
}

}  // namespace

std::unique_ptr<tool_call_parser> make_llama3_parser(const tool_calling& calling) {
  return std::make_unique<llama3_parser>(calling);
}

}  // namespace tandem::net

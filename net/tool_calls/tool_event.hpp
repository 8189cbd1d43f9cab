#pragma once
/// What a model's text says, piece by piece: words for the user, and calls of functions.

#include <string>
#include <string_view>
#include <vector>

namespace tandem::net {

/// Of a call, in order: begin, arguments (any number), complete or malformed. A call that turns out malformed before
/// its begin was told is content and nothing else.
struct tool_event {
  enum class kind {
    content,    ///< text: words for the user
    begin,      ///< text: the function's name
    arguments,  ///< text: the next bytes of a JSON object
    complete,   ///< the call's arguments are a whole JSON object
    malformed,  ///< text: everything the model wrote of the call, its tags included
  };
  kind what = kind::content;
  std::string text;
};

using tool_events = std::vector<tool_event>;

/// Joins pieces of the same kind that follow each other.
inline void add_event(tool_events& out, tool_event::kind what, std::string_view text) {
  const bool joins = what == tool_event::kind::content || what == tool_event::kind::arguments;
  if (joins && text.empty()) return;
  if (joins && !out.empty() && out.back().what == what) {
    out.back().text += text;
  } else {
    out.push_back({what, std::string(text)});
  }
}

}  // namespace tandem::net

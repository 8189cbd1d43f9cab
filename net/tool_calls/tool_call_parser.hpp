#pragma once
/// Text of a model → words for the user and calls of functions, while the text is still being written. Pure.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/tool_calls/tool_event.hpp"

namespace tandem::net {

/// How a model writes calls.
enum class tool_call_format : std::uint8_t {
  none,
  hermes,  ///< <tool_call>{"name": …, "arguments": …}</tool_call>, any number between other text: Qwen, Hermes;
           ///< the object alone or in a ```json block, too, as small models write it
  llama3_json,  ///< the whole text is {"name": …, "parameters": …}, several with ';' between them
};

/// Which format a chat template asks its model for.
tool_call_format format_of_template(std::string_view chat_template);

/// What a call of the API allows in its answers.
struct tool_calling {
  tool_call_format format = tool_call_format::none;  ///< none: text stays as it is
  std::vector<std::string> offered;                  ///< names of functions
  bool parallel = true;                              ///< false: calls behind the first are left out
  bool tags_only = false;                            ///< hermes: calls without tags stay text
  bool by_name = false;                              ///< the request named the one function to call

  bool wanted() const { return format != tool_call_format::none && !offered.empty(); }
};

/// One choice's text, in pieces. No byte of it is lost: what is no well-formed call of an offered function comes as
/// content; only the white space, tags and separators around calls go. <think>…</think> is content whatever it holds.
class tool_call_parser {
 public:
  virtual ~tool_call_parser() = default;
  /// `text` is whole UTF-8 characters.
  tool_events feed(std::string_view text);
  /// The text has ended.
  tool_events finish();

 protected:
  explicit tool_call_parser(const tool_calling& calling) : calling_(calling) {}
  const std::vector<std::string>& offered() const { return calling_.offered; }
  bool tags_only() const { return calling_.tags_only; }

 private:
  virtual void read(std::string_view text, tool_events& out) = 0;
  virtual void end(tool_events& out) = 0;
  tool_events allowed(tool_events events);

  tool_calling calling_;
  bool past_first_call_ = false;
};

/// Requires calling.wanted().
std::unique_ptr<tool_call_parser> make_tool_call_parser(const tool_calling& calling);
std::unique_ptr<tool_call_parser> make_hermes_parser(const tool_calling& calling);
std::unique_ptr<tool_call_parser> make_llama3_parser(const tool_calling& calling);

/// A whole text, read at once. Here a malformed call is content again, also where a stream had begun to tell it.
struct tool_message {
  struct call {
    std::string name;
    std::string arguments;  ///< JSON object
  };
  std::string content;
  std::vector<call> calls;
};
tool_message parse_tool_message(std::string_view text, const tool_calling& calling);

}  // namespace tandem::net

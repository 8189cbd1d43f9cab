#pragma once
/// The input of a response: OpenAI's items → items as they are listed again, and chat messages for the template. Pure.

#include <string>
#include <vector>

#include "net/field_reader.hpp"

namespace tandem::net {

struct input_item {
  std::string id;
  std::string json;  ///< an object with type, id and status
};

struct response_input {
  std::vector<input_item> items;
  std::string messages;  ///< chat messages as JSON, joined by commas, without brackets
};

/// `field` (`input`) of an object: a string, or a list of messages, function_call and function_call_output items;
/// mistakes stay in `fields`. `id_stem` makes the ids of items that have none: `<stem>_<number>`.
response_input read_input(field_reader& fields, std::string_view id_stem);

/// A steering input: a string or a list of the user's messages only.
response_input read_steering_input(field_reader& fields, std::string_view id_stem);

/// Two lists of messages behind each other.
std::string join_messages(const std::string& first, const std::string& second);

/// One chat message of a role and a text.
std::string chat_message(std::string_view role, std::string_view text);

/// Chat messages of a turn: the assistant's text and its function calls become one message, as templates want them.
class message_list {
 public:
  void add(std::string_view role, std::string_view text);
  /// `arguments`: JSON text; objects are handed to the template as such.
  void add_call(std::string_view call_id, std::string_view name, std::string_view arguments);
  void add_call_output(std::string_view call_id, std::string_view text);
  std::string take();

 private:
  void close_assistant();

  std::string out_;
  std::string assistant_text_;
  std::string calls_;  // of the open assistant message, joined by commas
  bool assistant_open_ = false;
};

}  // namespace tandem::net

#include "net/chat_messages.hpp"

#include <fmt/format.h>

#include "config/limits.hpp"
#include "net/json_text.hpp"

namespace tandem::net {
namespace {

// Joined text of a list of parts, or nothing after refusing.
std::optional<std::string> joined_parts(field_reader& fields, const std::vector<json_value>& parts) {
  std::string joined;
  for (const json_value& part : parts) {
    const auto object = as_object(part);
    const auto type = object ? object->find("type") : std::nullopt;
    const auto text = object ? object->find("text") : std::nullopt;
    if (!type || as_string(*type) != "text" || !text || !as_string(*text)) {
      fields.refuse("messages", "A message has a content part that is not text; this model takes only text parts.");
      return std::nullopt;
    }
    joined += *as_string(*text);
  }
  return joined;
}

// Templates iterate over arguments, clients send them as JSON in a string: opened when that is an object.
std::string opened_arguments(json_value arguments) {
  const auto text = as_string(arguments);
  if (!text) return json_text(arguments);
  // Half the depth: the text around it must stay below the full one.
  const auto inner = json_document::parse(*text, limits::kMaxJsonDepth / 2);
  if (inner && inner->root().is_object()) return json_text(inner->root());
  return json_text(arguments);
}

void write_function(json_writer& out, const json_object& function) {
  out.begin_object();
  for (const auto& [key, value] : function.members()) {
    out.key(key).raw(key == "arguments" ? opened_arguments(value) : json_text(value));
  }
  out.end_object();
}

void write_tool_calls(json_writer& out, const std::vector<json_value>& calls) {
  out.begin_array();
  for (const json_value& call : calls) {
    const auto object = as_object(call);
    if (!object) {
      out.raw(json_text(call));
      continue;
    }
    out.begin_object();
    for (const auto& [key, value] : object->members()) {
      const auto function = key == "function" ? as_object(value) : std::nullopt;
      out.key(key);
      if (function) {
        write_function(out, *function);
      } else {
        out.raw(json_text(value));
      }
    }
    out.end_object();
  }
  out.end_array();
}

void write_content(field_reader& fields, json_writer& out, const json_object& message, bool may_be_empty) {
  const auto content = message.find("content");
  out.key("content");
  if (!content) {
    if (!may_be_empty) fields.refuse("messages", "A message has no content; only an assistant's may be null.");
    // Templates of tool calls look for a null; others would join it with text, which fails.
    if (message.find("tool_calls")) {
      out.null();
    } else {
      out.string("");
    }
  } else if (content->is_string()) {
    out.raw(json_text(*content));
  } else if (const auto parts = as_array(*content)) {
    out.string(joined_parts(fields, *parts).value_or(""));
  } else {
    fields.refuse("messages", "A message's content must be a string or a list of text parts.");
    out.null();
  }
}

void write_message(field_reader& fields, json_writer& out, json_value value) {
  const auto message = as_object(value);
  if (!message) return fields.refuse("messages", "Every message must be an object with role and content.");
  const auto role_value = message->find("role");
  const auto role = role_value ? as_string(*role_value) : std::nullopt;
  if (!role || role->empty()) return fields.refuse("messages", "Every message must have a role, a string.");
  out.begin_object().key("role").string(*role);
  write_content(fields, out, *message, *role == "assistant");
  for (const auto& [key, member] : message->members()) {
    if (key == "role" || key == "content" || member.is_null()) continue;
    const auto calls = key == "tool_calls" ? as_array(member) : std::nullopt;
    out.key(key);
    if (calls) {
      write_tool_calls(out, *calls);
    } else {
      out.raw(json_text(member));
    }
  }
  out.end_object();
}

std::string read_messages(field_reader& fields) {
  const auto messages = fields.array("messages");
  if (!messages) {
    fields.refuse("messages", "'messages' is missing; send a list of messages.");
    return {};
  }
  if (messages->empty() || messages->size() > limits::kMaxMessages) {
    fields.refuse("messages", fmt::format("'messages' must hold 1 to {} messages.", limits::kMaxMessages));
    return {};
  }
  json_writer out;
  out.begin_array();
  for (const json_value& message : *messages) write_message(fields, out, message);
  out.end_array();
  return out.take();
}

}  // namespace

chat_prompt read_chat(field_reader& fields) {
  chat_prompt chat;
  chat.messages_json = read_messages(fields);
  if (fields.object("chat_template_kwargs")) chat.kwargs_json = json_text(*fields.any("chat_template_kwargs"));
  chat.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  const auto generation_prompt = fields.boolean("add_generation_prompt");
  chat.add_generation_prompt = generation_prompt.value_or(!chat.continue_final_message);
  if (chat.continue_final_message && chat.add_generation_prompt) {
    fields.refuse("continue_final_message",
                  "'continue_final_message' and 'add_generation_prompt' exclude each other; set one of them.");
  }
  return chat;
}

}  // namespace tandem::net

#include "net/responses/input_items.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "config/limits.hpp"
#include "net/json_text.hpp"

namespace tandem::net {
namespace {

enum class allowed { all, users_messages };

// The parts of one kind of content, joined in order; nothing after refusing.
std::optional<std::string> joined_text(field_reader& fields, json_value content) {
  if (const auto text = as_string(content)) return std::string(*text);
  const auto parts = as_array(content);
  if (!parts) {
    fields.refuse("input", "An item's content must be a string or a list of text parts.");
    return std::nullopt;
  }
  std::string joined;
  for (const json_value& part : *parts) {
    const auto object = as_object(part);
    const auto type = object ? object->find("type") : std::nullopt;
    const auto kind = type ? as_string(*type) : std::nullopt;
    const auto text = object ? object->find(kind == "refusal" ? "refusal" : "text") : std::nullopt;
    const bool known = kind == "input_text" || kind == "output_text" || kind == "text" || kind == "refusal";
    if (!known || !text || !as_string(*text)) {
      fields.refuse("input", "The input has a content part that is not text; this model takes only text parts.");
      return std::nullopt;
    }
    joined += *as_string(*text);
  }
  return joined;
}

std::string arguments_json(std::string_view arguments) {
  // Half the depth: the text around it must stay below the full one.
  const auto inner = json_document::parse(arguments, limits::kMaxJsonDepth / 2);
  if (inner && inner->root().is_object()) return json_text(inner->root());
  std::string quoted;
  append_json_string(quoted, arguments);
  return quoted;
}

class item_reader {
 public:
  item_reader(field_reader& fields, std::string_view id_stem, allowed kinds)
      : fields_(fields), id_stem_(id_stem), kinds_(kinds) {}

  void read(json_value value) {
    const auto item = as_object(value);
    if (!item) return refuse("Every item of the input must be an object.");
    const auto type = item->find("type");
    const auto name = type ? as_string(*type) : std::optional<std::string_view>("message");
    if (name == "message") return read_message(*item);
    if (kinds_ == allowed::users_messages) return refuse("Steering takes messages of the user only.");
    if (name == "function_call") return read_call(*item);
    if (name == "function_call_output") return read_output(*item);
    refuse(fmt::format("Items of type '{}' are not supported here; send messages, function_call and "
                       "function_call_output items.",
                       std::string(name.value_or("?").substr(0, 64))),
           error_code::unsupported);
  }

  void read_text(std::string_view text) {
    json_writer content;
    content.begin_array().begin_object().key("type").string("input_text").key("text").string(text);
    content.end_object().end_array();
    open_item("message", {}).key("role").string("user").key("content").raw(content.take()).end_object();
    close_item();
    messages_.add("user", text);
  }

  response_input take() { return {std::move(items_), messages_.take()}; }

 private:
  void refuse(std::string message, error_code code = error_code::invalid_argument) {
    fields_.refuse("input", std::move(message), code);
  }

  std::optional<std::string> required(const json_object& item, std::string_view name) {
    const auto value = item.find(name);
    const auto text = value ? as_string(*value) : std::nullopt;
    if (text) return std::string(*text);
    refuse(fmt::format("An item of the input lacks '{}', a string.", name));
    return std::nullopt;
  }

  json_writer& open_item(std::string_view type, std::optional<json_value> id) {
    const auto given = id ? as_string(*id) : std::nullopt;
    const bool usable = given && !given->empty() && given->size() <= 2 * limits::kMaxExternalIdBytes;
    id_ = usable ? std::string(*given) : fmt::format("{}_{}", id_stem_, items_.size());
    writer_.begin_object().key("type").string(type).key("id").string(id_);
    return writer_.key("status").string("completed");
  }
  void close_item() { items_.push_back({std::move(id_), writer_.take()}); }

  void read_message(const json_object& item) {
    const auto role = required(item, "role");
    const auto content = item.find("content");
    if (!role) return;
    constexpr std::array<std::string_view, 4> kRoles{"user", "assistant", "system", "developer"};
    if (std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end()) {
      return refuse("An item's role must be user, assistant, system or developer.");
    }
    if (kinds_ == allowed::users_messages && *role != "user") {
      return refuse("Steering takes messages of the user only.");
    }
    if (!content) return refuse("A message of the input has no content.");
    const auto text = joined_text(fields_, *content);
    if (!text) return;
    json_writer part;
    part.begin_array().begin_object().key("type").string(*role == "assistant" ? "output_text" : "input_text");
    part.key("text").string(*text);
    if (*role == "assistant") part.key("annotations").begin_array().end_array();
    part.end_object().end_array();
    open_item("message", item.find("id")).key("role").string(*role).key("content").raw(part.take()).end_object();
    close_item();
    messages_.add(*role == "developer" ? "system" : *role, *text);  // templates know no developer
  }

  void read_call(const json_object& item) {
    const auto call_id = required(item, "call_id");
    const auto name = required(item, "name");
    const auto arguments = required(item, "arguments");
    if (!call_id || !name || !arguments) return;
    open_item("function_call", item.find("id")).key("call_id").string(*call_id).key("name").string(*name);
    writer_.key("arguments").string(*arguments).end_object();
    close_item();
    messages_.add_call(*call_id, *name, *arguments);
  }

  void read_output(const json_object& item) {
    const auto call_id = required(item, "call_id");
    const auto output = item.find("output");
    if (!call_id) return;
    if (!output) return refuse("A function_call_output of the input lacks 'output'.");
    const auto text = joined_text(fields_, *output);
    if (!text) return;
    open_item("function_call_output", item.find("id")).key("call_id").string(*call_id);
    writer_.key("output").string(*text).end_object();
    close_item();
    messages_.add_call_output(*call_id, *text);
  }

  field_reader& fields_;
  std::string_view id_stem_;
  allowed kinds_;
  json_writer writer_;
  std::string id_;  // of the item that is written
  std::vector<input_item> items_;
  message_list messages_;
};

response_input read_items(field_reader& fields, std::string_view id_stem, allowed kinds) {
  item_reader reader(fields, id_stem, kinds);
  const auto input = fields.any("input");
  if (!input) {
    fields.refuse("input", "'input' is missing; send a string or a list of items.");
    return {};
  }
  if (const auto text = as_string(*input)) {
    reader.read_text(*text);
    return reader.take();
  }
  const auto items = as_array(*input);
  if (!items || items->empty() || items->size() > limits::kMaxMessages) {
    fields.refuse("input", fmt::format("'input' must be a string or a list of 1 to {} items.", limits::kMaxMessages));
    return {};
  }
  for (const json_value& item : *items) reader.read(item);
  return reader.take();
}

}  // namespace

response_input read_input(field_reader& fields, std::string_view id_stem) {
  return read_items(fields, id_stem, allowed::all);
}

response_input read_steering_input(field_reader& fields, std::string_view id_stem) {
  return read_items(fields, id_stem, allowed::users_messages);
}

std::string join_messages(const std::string& first, const std::string& second) {
  if (first.empty() || second.empty()) return first + second;
  return first + "," + second;
}

std::string chat_message(std::string_view role, std::string_view text) {
  json_writer out;
  out.begin_object().key("role").string(role).key("content").string(text).end_object();
  return out.take();
}

void message_list::add(std::string_view role, std::string_view text) {
  close_assistant();
  if (role == "assistant") {
    assistant_open_ = true;
    assistant_text_ = text;
    return;
  }
  out_ = join_messages(out_, chat_message(role, text));
}

void message_list::add_call(std::string_view call_id, std::string_view name, std::string_view arguments) {
  assistant_open_ = true;
  json_writer call;
  call.begin_object().key("id").string(call_id).key("type").string("function").key("function").begin_object();
  call.key("name").string(name).key("arguments").raw(arguments_json(arguments)).end_object().end_object();
  calls_ = join_messages(calls_, call.take());
}

void message_list::add_call_output(std::string_view call_id, std::string_view text) {
  close_assistant();
  json_writer message;
  message.begin_object().key("role").string("tool").key("tool_call_id").string(call_id);
  message.key("content").string(text).end_object();
  out_ = join_messages(out_, message.take());
}

void message_list::close_assistant() {
  if (!std::exchange(assistant_open_, false)) return;
  json_writer message;
  message.begin_object().key("role").string("assistant").key("content").string(std::exchange(assistant_text_, {}));
  if (!calls_.empty()) message.key("tool_calls").raw("[" + std::exchange(calls_, {}) + "]");
  message.end_object();
  out_ = join_messages(out_, message.take());
}

std::string message_list::take() {
  close_assistant();
  return std::exchange(out_, {});
}

}  // namespace tandem::net

#include "net/responses/response_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/edge_limits.hpp"
#include "config/limits.hpp"
#include "net/endpoints.hpp"
#include "net/json_text.hpp"
#include "net/sampling_fields.hpp"
#include "net/structured_fields.hpp"
#include "net/tool_calls/tool_fields.hpp"
#include "text/utf8.hpp"

namespace tandem::net {
namespace {

constexpr std::string_view kLogprobs = "message.output_text.logprobs";
constexpr std::array<std::string_view, 8> kIncludable{
    kLogprobs,
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
};

void refuse_later_features(field_reader& fields) {
  for (const std::string_view name : {"conversation", "prompt", "context_management", "moderation"}) {
    fields.refuse_unsupported(name);
  }
}

void read_include(field_reader& fields, response_request& out, generation_request& common) {
  const auto list = fields.array("include");
  const auto top = fields.integer("top_logprobs", 0, limits::kMaxLogprobs);
  if (!list) return;
  for (const json_value& value : *list) {
    const auto name = as_string(value);
    if (!name || std::find(kIncludable.begin(), kIncludable.end(), *name) == kIncludable.end()) {
      return fields.refuse("include", fmt::format("'include' knows '{}' only.", kLogprobs));
    }
    out.call.logprobs = out.call.logprobs || *name == kLogprobs;
  }
  if (out.call.logprobs) common.logprobs.top = static_cast<std::int32_t>(top.value_or(0));
}

void check_metadata(field_reader& fields) {
  const auto metadata = fields.object("metadata");
  if (!metadata) return;
  bool fits = metadata->members().size() <= limits::kMaxResponseMetadata;
  for (const auto& [key, value] : metadata->members()) {
    const auto text = as_string(value);
    fits = fits && text && text::count_characters(key) <= limits::kMaxResponseMetadataKey &&
           text::count_characters(*text) <= limits::kMaxResponseMetadataValue;
  }
  if (!fits) {
    fields.refuse("metadata", fmt::format("'metadata' takes at most {} strings of {} characters, under keys of {}.",
                                          limits::kMaxResponseMetadata, limits::kMaxResponseMetadataValue,
                                          limits::kMaxResponseMetadataKey));
  }
}

void check_truncation(field_reader& fields) {
  const auto wanted = fields.string("truncation", 64);
  if (!wanted || *wanted == "disabled") return;
  fields.refuse("truncation", "'truncation' other than \"disabled\" is not supported; send less input.",
                error_code::unsupported);
}

// The Responses API has a function's members beside its type; chat and templates have them one level down.
void write_chat_tool(json_writer& out, json_value value) {
  const auto tool = as_object(value);
  const auto type = tool ? tool->find("type") : std::nullopt;
  if (!type || as_string(*type) != "function") {
    out.raw(json_text(value));  // refused as chat refuses it
    return;
  }
  out.begin_object().key("type").string("function").key("function").begin_object();
  for (const auto& [key, member] : tool->members()) {
    if (key != "type") out.key(key).raw(json_text(member));
  }
  out.end_object().end_object();
}

// The fields of tools as chat has them.
std::string chat_tool_fields(field_reader& fields) {
  json_writer out;
  out.begin_object();
  if (const auto tools = fields.array("tools")) {
    out.key("tools").begin_array();
    for (const json_value& tool : *tools) write_chat_tool(out, tool);
    out.end_array();
  }
  if (const auto choice = fields.any("tool_choice")) {
    out.key("tool_choice");
    choice->is_object() ? write_chat_tool(out, *choice) : void(out.raw(json_text(*choice)));
  }
  if (const auto parallel = fields.any("parallel_tool_calls")) out.key("parallel_tool_calls").raw(json_text(*parallel));
  return out.end_object().take();
}

// Places in messages are those of chat's form: `tools[0].function.name`.
tool_request read_tools(field_reader& fields, const request_facts& facts) {
  const auto document = json_document::parse(chat_tool_fields(fields), limits::kMaxJsonDepth + 2);
  const auto object = document ? as_object(document->root()) : std::nullopt;
  if (!object) {
    fields.refuse("tools", "'tools' cannot be read.");
    return {};
  }
  field_reader inner(*object);
  tool_request tools = read_tool_fields(inner, facts);
  if (const auto& problem = inner.problem()) fields.refuse(problem->param, problem->message, problem->code);
  return tools;
}

// What a response repeats of its request, with the defaults where it said nothing.
std::string settings_of(const field_reader& fields, const response_request& request, const generation_request& common) {
  json_writer out;
  const auto given = [&](std::string_view name, std::string_view otherwise) {
    const auto value = fields.any(name);
    out.key(name).raw(value ? json_text(*value) : std::string(otherwise));
  };
  out.begin_object().key("model").string(request.call.model);
  for (const std::string_view name : {"instructions", "max_output_tokens", "max_tool_calls", "user", "reasoning",
                                      "safety_identifier", "prompt_cache_key", "service_tier"}) {
    given(name, "null");
  }
  given("metadata", "{}");
  given("parallel_tool_calls", "true");
  out.key("temperature").number(static_cast<double>(common.sampling.temperature));
  out.key("top_p").number(static_cast<double>(common.sampling.top_p));
  given("text", R"({"format":{"type":"text"}})");
  given("tool_choice", "\"auto\"");
  given("tools", "[]");
  given("top_logprobs", "0");
  given("truncation", "\"disabled\"");
  out.key("store").boolean(request.store).key("background").boolean(request.background).end_object();
  const std::string object = out.take();
  return object.substr(1, object.size() - 2);
}

// In the background everything is told to the record, from which whoever comes reads it.
void read_background(field_reader& fields, response_request& out) {
  out.store = fields.boolean("store").value_or(true);
  out.events_wanted = fields.boolean("stream").value_or(false);
  out.background = fields.boolean("background").value_or(false);
  out.call.stream = out.events_wanted || out.background;
  if (out.background && !out.store) {
    fields.refuse("background", "'background' needs 'store': nothing else would keep the answer.");
  }
}

void read_lane(field_reader& fields, response_request& out) {
  if (const auto lane = fields.string("stream_id", limits::kMaxStreamIdBytes)) {
    if (lane->empty()) fields.refuse("stream_id", "'stream_id' must not be empty; leave it out instead.");
    out.stream_id = std::string(*lane);
  }
  out.concurrent = fields.boolean("concurrent").value_or(false);
}

// Gives the grammar of calls that are asked for.
std::optional<structured_spec> read_prompt(field_reader& fields, const request_facts& facts, response_request& out,
                                           generation_request& common) {
  if (!facts.has_chat_template) {
    fields.refuse("input",
                  "This model has no chat template; start the server with --chat-template or use "
                  "/v1/completions.");
  }
  chat_prompt chat;
  tool_request tools = read_tools(fields, facts);
  chat.tools_json = std::move(tools.json);
  out.call.tools = std::move(tools.calling);
  if (fields.object("chat_template_kwargs")) chat.kwargs_json = json_text(*fields.any("chat_template_kwargs"));
  common.prompt = std::move(chat);
  out.instructions = std::string(fields.string("instructions", limits::kMaxEncodeBytes).value_or(""));
  out.input = read_input(fields, fresh_id("item_"));
  return std::move(tools.grammar);
}

}  // namespace

response_request read_response(field_reader& fields, std::string_view timeout_header, const request_facts& facts) {
  response_request out;
  generation_request common;
  refuse_later_features(fields);
  out.call.shape = api_shape::chat;
  out.call.prompt_count = 1;
  out.call.model = read_model(fields, facts);
  auto grammar = read_prompt(fields, facts, out, common);
  read_generation_fields(fields, timeout_header, facts, common);
  add_tool_grammar(fields, std::move(grammar), common);
  const bool tags_wanted = out.call.tools.wanted() && facts.special_tool_tags;
  if (tags_wanted && !fields.any("skip_special_tokens")) common.stopping.skip_special_tokens = false;
  if (common.n != 1) fields.refuse("n", "A response has one choice; leave out 'n'.");
  if (common.stopping.max_tokens == 0) fields.refuse("max_output_tokens", "'max_output_tokens' must be at least 1.");
  read_include(fields, out, common);
  check_metadata(fields);
  read_text_format(fields, common.structured);
  check_truncation(fields);
  read_lane(fields, out);
  read_background(fields, out);
  out.call.include_timings = fields.boolean("include_timings").value_or(false);
  out.call.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  out.generate = fields.boolean("generate").value_or(true);
  out.previous_id = std::string(fields.string("previous_response_id", 2 * limits::kMaxExternalIdBytes).value_or(""));
  out.settings_json = settings_of(fields, out, common);
  out.call.prompts.push_back(std::move(common));
  return out;
}

result<response_request> parse_response(std::string_view body, std::string_view timeout_header,
                                        const request_facts& facts) {
  const auto document = json_document::parse(body, limits::kMaxJsonDepth);
  if (!document) return tl::unexpected<error>(document.error());
  const auto object = as_object(document->root());
  if (!object) return fail(error_code::invalid_argument, "The body must be a JSON object.");
  field_reader fields(*object);
  response_request request = read_response(fields, timeout_header, facts);
  if (fields.problem()) return tl::unexpected<error>(*fields.problem());
  return request;
}

api_request compose(const response_request& request, const std::string& conversation) {
  api_request call = request.call;
  std::string messages = request.instructions.empty() ? "" : chat_message("system", request.instructions);
  messages = join_messages(join_messages(messages, conversation), request.input.messages);
  std::get<chat_prompt>(call.prompts.front().prompt).messages_json = "[" + messages + "]";
  return call;
}

}  // namespace tandem::net

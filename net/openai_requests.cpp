// Bytes → api_request. Everything is checked here, before anything is submitted.

#include "net/openai_requests.hpp"

#include <fmt/format.h>

#include "config/limits.hpp"
#include "net/chat_messages.hpp"
#include "net/field_reader.hpp"
#include "net/json_text.hpp"
#include "net/sampling_fields.hpp"
#include "net/tool_calls/tool_fields.hpp"

namespace tandem::net {
namespace {

struct opened_body {
  json_document document;
  json_object object;
};

result<opened_body> open(std::string_view body) {
  auto document = json_document::parse(body, limits::kMaxJsonDepth);
  if (!document) return tl::unexpected<error>(document.error());
  auto object = as_object(document->root());
  if (!object) return fail(error_code::invalid_argument, "The body must be a JSON object.");
  return opened_body{std::move(*document), std::move(*object)};
}

prompt_text plain_prompt(std::string_view text, bool add_bos) {
  prompt_text prompt;
  prompt.text = std::string(text);
  prompt.trusted = {{0, text.size()}};  // as vLLM: a completion's prompt may hold special tokens
  prompt.add_bos = add_bos;
  return prompt;
}

/// The prompts of one call, in order.
struct prompt_list {
  std::vector<prompt_source> sources;
  std::vector<std::string> texts;
};

void add_ids(field_reader& fields, const std::vector<json_value>& values, const request_facts& facts,
             prompt_list& out) {
  if (values.empty()) return fields.refuse("prompt", "'prompt' must not be an empty list.");
  auto ids = fields.tokens_of("prompt", values, facts.vocabulary, limits::kMaxModelLength);
  if (!ids) return;
  out.sources.emplace_back(std::move(*ids));
  out.texts.emplace_back();
}

void add_text(std::string_view text, bool add_bos, prompt_list& out) {
  out.sources.emplace_back(plain_prompt(text, add_bos));
  out.texts.emplace_back(text);
}

prompt_list read_prompts(field_reader& fields, const request_facts& facts) {
  prompt_list prompts;
  const bool add_bos = fields.boolean("add_special_tokens").value_or(true);
  const auto value = fields.any("prompt");
  if (!value) {
    fields.refuse("prompt", "'prompt' is missing; send a string, a list of strings, or token ids.");
    return prompts;
  }
  if (const auto text = as_string(*value)) {
    add_text(*text, add_bos, prompts);
    return prompts;
  }
  const auto list = as_array(*value);
  if (!list) {
    fields.refuse("prompt", "'prompt' must be a string, a list of strings, or token ids.");
    return prompts;
  }
  if (list->empty() || list->front().is_number()) {
    add_ids(fields, *list, facts, prompts);
    return prompts;
  }
  if (list->size() > limits::kMaxPromptsPerRequest) {
    fields.refuse("prompt", fmt::format("'prompt' takes at most {} prompts.", limits::kMaxPromptsPerRequest));
    return prompts;
  }
  const bool texts = list->front().is_string();
  for (const json_value& entry : *list) {
    const auto text = as_string(entry);
    const auto ids = as_array(entry);
    if (texts != text.has_value() || (!text && !ids)) {
      fields.refuse("prompt", "'prompt' must be a string, a list of strings, or token ids, not a mixture.");
      return prompts;
    }
    if (text) {
      add_text(*text, add_bos, prompts);
    } else {
      add_ids(fields, *ids, facts, prompts);
    }
  }
  return prompts;
}

std::int32_t read_top(field_reader& fields, std::string_view name) {
  return static_cast<std::int32_t>(fields.integer(name, 0, limits::kMaxLogprobs).value_or(-1));
}

void read_stream(field_reader& fields, api_request& out) {
  out.stream = fields.boolean("stream").value_or(false);
  const auto options = fields.object("stream_options");
  if (!options) return;
  if (!out.stream) return fields.refuse("stream_options", "'stream_options' needs 'stream': true.");
  field_reader inner(*options);
  out.include_usage = inner.boolean("include_usage").value_or(false);
  if (inner.problem()) fields.refuse("stream_options.include_usage", inner.problem()->message);
}

void read_answer_fields(field_reader& fields, api_request& out) {
  read_stream(fields, out);
  out.include_timings = fields.boolean("include_timings").value_or(false);
  out.return_token_ids = fields.boolean("return_token_ids").value_or(false);
}

void check_scoring(field_reader& fields, const api_request& out, const generation_request& request) {
  if (out.stream && request.best_of > request.n) {
    fields.refuse("best_of",
                  "'best_of' above 'n' cannot be streamed: the best are known at the end; leave out 'stream'.");
  }
  if (request.stopping.max_tokens != 0) return;
  if (!out.echo && request.logprobs.prompt_top < 0) {
    fields.refuse("max_tokens", "'max_tokens' is 0, which needs 'echo' or 'prompt_logprobs'; ask for at least 1.");
  }
}

result<api_request> spread(field_reader& fields, api_request out, const generation_request& common,
                           prompt_list prompts) {
  check_scoring(fields, out, common);
  if (fields.problem()) return tl::unexpected<error>(*fields.problem());
  out.n = common.n;
  for (prompt_source& source : prompts.sources) {
    out.prompts.push_back(common);
    out.prompts.back().prompt = std::move(source);
  }
  out.prompt_count = out.prompts.size();
  if (out.echo || out.shape == api_shape::generate) out.prompt_texts = std::move(prompts.texts);
  return out;
}

// As completions have them, and vLLM everywhere.
void read_counted_logprobs(field_reader& fields, api_request& out, generation_request& request) {
  request.logprobs.top = read_top(fields, "logprobs");
  request.logprobs.prompt_top = read_top(fields, "prompt_logprobs");
  out.logprobs = request.logprobs.top >= 0;
  out.prompt_logprobs = request.logprobs.prompt_top >= 0;
  // echo with logprobs shows those of the prompt too, as OpenAI does.
  if (out.echo && out.logprobs)
    request.logprobs.prompt_top = std::max(request.logprobs.prompt_top, request.logprobs.top);
}

void read_chat_logprobs(field_reader& fields, api_request& out, generation_request& request) {
  out.logprobs = fields.boolean("logprobs").value_or(false);
  const std::int32_t top = read_top(fields, "top_logprobs");
  if (top > 0 && !out.logprobs) fields.refuse("top_logprobs", "'top_logprobs' needs 'logprobs': true.");
  if (out.logprobs) request.logprobs.top = std::max(0, top);
  request.logprobs.prompt_top = read_top(fields, "prompt_logprobs");
  out.prompt_logprobs = request.logprobs.prompt_top >= 0;
}

struct chat_call {
  prompt_list prompts;
  tool_calling tools;
  std::optional<structured_spec> grammar;
};

chat_call read_chat_call(field_reader& fields, const request_facts& facts) {
  chat_call call;
  if (!facts.has_chat_template) {
    fields.refuse("messages", "This model has no chat template; start the server with --chat-template or use prompts.");
  }
  chat_prompt chat = read_chat(fields);
  tool_request tools = read_tool_fields(fields, facts);
  chat.tools_json = std::move(tools.json);
  call.tools = std::move(tools.calling);
  call.grammar = std::move(tools.grammar);
  call.prompts.sources.emplace_back(std::move(chat));
  call.prompts.texts.emplace_back();
  return call;
}

}  // namespace

result<api_request> parse_generate(std::string_view body, std::string_view timeout_header, const request_facts& facts) {
  const auto opened = open(body);
  if (!opened) return tl::unexpected<error>(opened.error());
  field_reader fields(opened->object);
  api_request out;
  generation_request common;
  out.shape = api_shape::generate;
  out.model = read_model(fields, facts);
  prompt_list prompts = read_prompts(fields, facts);
  read_generation_fields(fields, timeout_header, facts, common);
  read_answer_fields(fields, out);
  read_counted_logprobs(fields, out, common);
  return spread(fields, std::move(out), common, std::move(prompts));
}

result<api_request> parse_completion(std::string_view body, std::string_view timeout_header,
                                     const request_facts& facts) {
  const auto opened = open(body);
  if (!opened) return tl::unexpected<error>(opened.error());
  field_reader fields(opened->object);
  api_request out;
  generation_request common;
  out.shape = api_shape::completion;
  out.model = read_model(fields, facts);
  prompt_list prompts = read_prompts(fields, facts);
  read_generation_fields(fields, timeout_header, facts, common);
  read_answer_fields(fields, out);
  out.echo = fields.boolean("echo").value_or(false);
  read_counted_logprobs(fields, out, common);
  return spread(fields, std::move(out), common, std::move(prompts));
}

result<api_request> parse_chat(std::string_view body, std::string_view timeout_header, const request_facts& facts) {
  const auto opened = open(body);
  if (!opened) return tl::unexpected<error>(opened.error());
  field_reader fields(opened->object);
  api_request out;
  generation_request common;
  out.shape = api_shape::chat;
  out.model = read_model(fields, facts);
  chat_call call = read_chat_call(fields, facts);
  read_generation_fields(fields, timeout_header, facts, common);
  read_answer_fields(fields, out);
  if (fields.boolean("echo").value_or(false)) fields.refuse_unsupported("echo");
  read_chat_logprobs(fields, out, common);
  out.tools = std::move(call.tools);
  add_tool_grammar(fields, std::move(call.grammar), common);
  const bool tags_wanted = out.tools.wanted() && facts.special_tool_tags;
  if (tags_wanted && !fields.any("skip_special_tokens")) common.stopping.skip_special_tokens = false;
  return spread(fields, std::move(out), common, std::move(call.prompts));
}

namespace {

result<api_request> frame_request(field_reader& fields, const request_facts& facts) {
  api_request out;
  generation_request common;
  out.shape = api_shape::frame;
  out.stream = true;
  out.return_token_ids = true;
  out.model = read_model(fields, facts);
  const bool chat = fields.any("messages").has_value();
  if (chat && fields.any("prompt")) fields.refuse("prompt", "Send 'prompt' or 'messages', not both.");
  chat_call call;
  if (chat) {
    call = read_chat_call(fields, facts);
  } else {
    call.prompts = read_prompts(fields, facts);
  }
  if (call.prompts.sources.size() > 1) fields.refuse("prompt", "A frame takes one prompt; send a frame for each.");
  read_generation_fields(fields, {}, facts, common);
  add_tool_grammar(fields, std::move(call.grammar), common);
  out.include_timings = fields.boolean("include_timings").value_or(false);
  out.include_drafts = fields.boolean("include_drafts").value_or(false);
  out.skip_special_tokens = common.stopping.skip_special_tokens;
  read_counted_logprobs(fields, out, common);
  return spread(fields, std::move(out), common, std::move(call.prompts));
}

std::string frame_id(field_reader& fields) {
  const auto id = fields.any("id");
  if (id && (id->is_string() || whole_number(*id))) {
    std::string text = json_text(*id);
    if (text.size() <= limits::kMaxExternalIdBytes) return text;
  }
  fields.refuse("id", fmt::format("'id' must be a string or a whole number of at most {} characters.",
                                  limits::kMaxExternalIdBytes));
  return {};
}

}  // namespace

result<socket_frame> parse_frame(std::string_view text, const request_facts& facts) {
  const auto opened = open(text);
  if (!opened) return tl::unexpected<error>(opened.error());
  field_reader fields(opened->object);
  socket_frame frame;
  frame.id_json = frame_id(fields);
  frame.cancel = fields.boolean("cancel").value_or(false);
  if (fields.problem() && frame.id_json.empty()) return tl::unexpected<error>(*fields.problem());
  if (!frame.cancel) frame.request = frame_request(fields, facts);
  return frame;
}

result<tokenize_request> parse_tokenize(std::string_view body, const request_facts& facts) {
  const auto opened = open(body);
  if (!opened) return tl::unexpected<error>(opened.error());
  field_reader fields(opened->object);
  read_model(fields, facts);
  tokenize_request out;
  if (fields.any("messages")) {
    out.prompt = std::move(read_chat_call(fields, facts).prompts.sources.front());
  } else if (const auto text = fields.string("prompt", limits::kMaxEncodeBytes)) {
    out.prompt = plain_prompt(*text, fields.boolean("add_special_tokens").value_or(true));
  } else {
    fields.refuse("prompt", "'prompt' is missing; send a string, or 'messages'.");
  }
  if (fields.problem()) return tl::unexpected<error>(*fields.problem());
  return out;
}

result<std::vector<token_id>> parse_detokenize(std::string_view body, const request_facts& facts) {
  const auto opened = open(body);
  if (!opened) return tl::unexpected<error>(opened.error());
  field_reader fields(opened->object);
  read_model(fields, facts);
  auto tokens = fields.tokens("tokens", facts.vocabulary, limits::kMaxModelLength);
  if (!tokens) fields.refuse("tokens", "'tokens' is missing; send a list of token ids.");
  if (fields.problem()) return tl::unexpected<error>(*fields.problem());
  return std::move(*tokens);
}

}  // namespace tandem::net

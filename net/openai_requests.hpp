#pragma once
/// A call of the API as values: what to generate and how to answer. Between bytes and the runtime.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.hpp"
#include "core/result.hpp"
#include "core/speculation/policy.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {

/// What a request is checked against; facts of the served model, copied out of the runtime.
struct request_facts {
  std::vector<std::string> model_names;  ///< the first is the one answers carry
  std::int32_t vocabulary = 0;           ///< token ids are below this
  std::int32_t max_model_len = 0;
  std::int32_t max_draft_tokens = 0;
  std::array<bool, kDraftMethods> drafters{true, true, true, true, true, true, true};  ///< by draft_method
  bool has_chat_template = false;
  tool_call_format tool_calls = tool_call_format::none;
  bool special_tool_tags = false;  ///< the tags around calls are special tokens, which have no text unless asked for
};

enum class api_shape : std::uint8_t { generate, completion, chat, frame };

/// How a call is answered.
struct answer_format {
  api_shape shape = api_shape::completion;
  std::size_t prompt_count = 0;
  std::vector<std::string> prompt_texts;  ///< as given, where the answer repeats them; empty for ids
  std::string model;                      ///< as the answer names it
  std::int32_t n = 1;
  bool stream = false;
  bool include_usage = false;
  bool include_timings = false;
  bool return_token_ids = false;
  bool include_drafts = false;      ///< frames say which characters were drafted
  bool skip_special_tokens = true;  ///< special tokens have no characters
  bool echo = false;
  bool logprobs = false;         ///< in the answer
  bool prompt_logprobs = false;  ///< vLLM's field in the answer
  tool_calling tools;            ///< of a chat
};

struct api_request : answer_format {
  std::vector<generation_request> prompts;  ///< one per prompt, each with n choices
};

/// `timeout_header`: the value of X-Request-Timeout-Ms or empty; with `timeout_ms` in the body the smaller one counts.
/// Errors: invalid_argument, unsupported, not_found (model), each with the field.
result<api_request> parse_generate(std::string_view body, std::string_view timeout_header, const request_facts& facts);
result<api_request> parse_completion(std::string_view body, std::string_view timeout_header,
                                     const request_facts& facts);
result<api_request> parse_chat(std::string_view body, std::string_view timeout_header, const request_facts& facts);

/// A frame of GET /ws: a request or a cancellation.
struct socket_frame {
  std::string id_json;  ///< the client's id as JSON text, to be echoed; empty when it could not be read
  bool cancel = false;
  result<api_request> request{};  ///< when not a cancellation
};
/// Error: the frame as a whole cannot be read.
result<socket_frame> parse_frame(std::string_view text, const request_facts& facts);

struct tokenize_request {
  prompt_source prompt;
};
result<tokenize_request> parse_tokenize(std::string_view body, const request_facts& facts);
result<std::vector<token_id>> parse_detokenize(std::string_view body, const request_facts& facts);

}  // namespace tandem::net

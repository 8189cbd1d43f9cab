// What every shape of answer shares.

#include <fmt/format.h>

#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

std::string_view code_name(error_code code) {
  switch (code) {
    case error_code::invalid_argument:
      return "invalid_argument";
    case error_code::not_found:
      return "not_found";
    case error_code::too_large:
      return "too_large";
    case error_code::overloaded:
      return "overloaded";
    case error_code::unavailable:
      return "unavailable";
    case error_code::deadline:
      return "deadline_exceeded";
    case error_code::cancelled:
      return "cancelled";
    case error_code::unsupported:
      return "unsupported";
    case error_code::corrupt:
      return "internal_error";
    case error_code::io:
      return "internal_error";
    case error_code::device_failed:
      return "device_failed";
  }
  return "internal_error";
}

std::string_view error_type(unsigned status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

std::string error_text(unsigned status, std::string_view message, std::string_view param, std::string_view code) {
  json_writer out;
  out.begin_object().key("error").begin_object();
  out.key("message").string(message).key("type").string(error_type(status)).key("param");
  if (param.empty()) {
    out.null();
  } else {
    out.string(param);
  }
  out.key("code").string(code).end_object().end_object();
  return out.take();
}

}  // namespace

unsigned status_of(error_code code) {
  switch (code) {
    case error_code::invalid_argument:
    case error_code::unsupported:
      return 400;
    case error_code::not_found:
      return 404;
    case error_code::too_large:
      return 413;
    case error_code::overloaded:
      return 429;
    case error_code::unavailable:
      return 503;
    case error_code::deadline:
      return 408;
    case error_code::cancelled:
      return 499;
    case error_code::corrupt:
    case error_code::io:
    case error_code::device_failed:
      return 500;
  }
  return 500;
}

std::string error_json(const error& reason) {
  const bool no_model = reason.code == error_code::not_found && reason.param == "model";
  return error_text(status_of(reason.code), reason.message, reason.param,
                    no_model ? "model_not_found" : code_name(reason.code));
}

http_response error_response(const error& reason) {
  http_response response;
  response.status = status_of(reason.code);
  response.body = error_json(reason);
  if (response.status == 429 || response.status == 503) {
    response.headers.emplace_back("Retry-After", fmt::format("{}", limits::kRetryAfter.count()));
  }
  return response;
}

http_response error_response(unsigned status, std::string message, std::string code) {
  http_response response;
  response.status = status;
  response.body = error_text(status, message, {}, code);
  return response;
}

std::string sse_event(std::string_view json) {
  return fmt::format("data: {}\n\n", json);
}

api_answer::api_answer(const answer_format& format, answer_context context)
    : format_(format),
      context_(std::move(context)),
      prompts_(format.prompt_count),
      choices_(format.prompt_count * static_cast<std::size_t>(format.n)) {}

void api_answer::accept(std::size_t prompt, std::shared_ptr<const std::vector<token_id>> ids) {
  TANDEM_ASSERT(prompt < prompts_.size() && ids && !prompts_[prompt]);
  counts_.prompt_tokens += static_cast<std::int64_t>(ids->size());
  prompts_[prompt] = std::move(ids);
  ++accepted_;
}

void api_answer::append(std::size_t prompt, generation_event event, std::string& out) {
  const std::size_t index = prompt * static_cast<std::size_t>(format_.n) + static_cast<std::size_t>(event.choice);
  TANDEM_ASSERT(event.choice >= 0 && event.choice < format_.n && index < choices_.size());
  choice& at = choices_[index];
  TANDEM_ASSERT(!at.end);  // exactly one terminal event, the last
  if (event.end) {
    at.end = event.end;
    note_end(*event.end);
    counts_.add(event.stats);
    if (event.choice == 0) counts_.cached_tokens += event.stats.cached_tokens;
  }
  if (keeps_output()) {
    at.text += event.text;
    at.tokens.insert(at.tokens.end(), event.tokens.begin(), event.tokens.end());
    at.logprobs.insert(at.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    at.prompt_logprobs.insert(at.prompt_logprobs.end(), event.prompt_logprobs.begin(), event.prompt_logprobs.end());
  }
  if (format_.stream) show(index, event, at, out);
}

void api_answer::note_end(const tandem::finish& end) {
  ++ended_;
  if (end.reason == finish_reason::timeout) ++timed_out_;
  if (end.reason != finish_reason::error || failed_) return;
  failed_ =
      error{end.code,
            end.message.empty() ? "The engine failed while it worked on this request; send it again." : end.message,
            {}};
}

std::optional<error> api_answer::failure() const {
  if (failed_) return failed_;
  if (timed_out_ == choices_.size() && !format_.stream && counts_.sum.completion_tokens == 0) {
    return error{error_code::deadline, "The deadline passed before the first token; allow more time.", "timeout_ms"};
  }
  return std::nullopt;
}

const std::vector<token_id>& api_answer::prompt_ids(std::size_t choice_index) const {
  return *prompts_[choice_index / static_cast<std::size_t>(format_.n)];
}

std::string api_answer::prompt_shown(std::size_t prompt) const {
  const std::string& given = format_.prompt_texts[prompt];
  return given.empty() ? context_.texts.decode(*prompts_[prompt]) : given;
}

bool api_answer::scores_prompt(const generation_event& event) const {
  return format_.prompt_logprobs && !event.prompt_logprobs.empty();
}

void api_answer::write_prompt_part(json_writer& out, const generation_event& event, choice& at) const {
  if (!format_.prompt_logprobs || (at.prompt_begun && event.prompt_logprobs.empty())) return;
  out.key("prompt_logprobs");
  write_prompt_logprobs(out, event.prompt_logprobs, context_.texts, !std::exchange(at.prompt_begun, true));
}

void api_answer::write_identity(json_writer& out, std::string_view object) const {
  out.key("id").string(context_.id).key("object").string(object);
  out.key("created").integer(context_.created).key("model").string(format_.model);
}

std::unique_ptr<api_answer> make_answer(const answer_format& format, answer_context context) {
  switch (format.shape) {
    case api_shape::generate:
      return make_generate_answer(format, std::move(context));
    case api_shape::chat:
      return make_chat_answer(format, std::move(context));
    default:
      return make_completion_answer(format, std::move(context));
  }
}

}  // namespace tandem::net

// Answers of POST /v1/chat/completions.

#include <fmt/format.h>

#include "core/assert.hpp"
#include "core/finish_names.hpp"
#include "net/chat_tool_calls.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

class chat_answer final : public api_answer {
 public:
  chat_answer(const answer_format& format, answer_context context) : api_answer(format, std::move(context)) {
    if (!format_.stream || !format_.tools.wanted()) return;
    for (std::size_t i = 0; i < choices_.size(); ++i) streams_.emplace_back(format_.tools, id_stem(i));
  }
  std::string_view content_type() const override { return format_.stream ? "text/event-stream" : "application/json"; }
  std::string_view ping() const override { return kSsePing; }

  std::string begin() override {
    std::string out;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      json_writer role;
      open_chunk(role, i);
      role.key("delta").begin_object().key("role").string("assistant").key("content").string("").end_object();
      role.key("logprobs").null();
      write_finish(role, std::nullopt);
      role.end_object().end_array();
      if (format_.return_token_ids && i == 0) {
        role.key("prompt_token_ids");
        write_tokens(role, prompt_ids(0));
      }
      out += close_chunk(role, false);
    }
    return out;
  }

  std::string finish() override {
    std::string out;
    if (format_.include_usage) {
      json_writer usage;
      usage.begin_object();
      write_identity(usage, "chat.completion.chunk");
      usage.key("choices").begin_array().end_array().key("usage");
      write_usage(usage, counts_);
      usage.end_object();
      out += sse_event(usage.take());
    }
    out += kSseDone;
    return out;
  }

  std::string fail(const error& reason) override { return sse_event(error_json(reason)); }

  std::string whole() override {
    json_writer out;
    out.begin_object();
    write_identity(out, "chat.completion");
    out.key("choices").begin_array();
    for (std::size_t i = 0; i < choices_.size(); ++i) write_choice(out, i);
    out.end_array().key("usage");
    write_usage(out, counts_);
    if (format_.prompt_logprobs) {
      out.key("prompt_logprobs");
      write_prompt_logprobs(out, choices_.front().prompt_logprobs, context_.texts);
    }
    if (format_.return_token_ids) {
      out.key("prompt_token_ids");
      write_tokens(out, prompt_ids(0));
    }
    if (format_.include_timings) {
      out.key("timings");
      write_timings(out, counts_);
    }
    out.end_object();
    return out.take();
  }

 private:
  void show(std::size_t index, const generation_event& event, choice& at, std::string& out) override {
    std::vector<std::string> deltas = deltas_of(index, event);
    const bool tokens_wanted = format_.logprobs || format_.return_token_ids;
    const bool prompt_part = index == 0 && scores_prompt(event);
    if (deltas.empty() && !event.end && !prompt_part && !(tokens_wanted && !event.tokens.empty())) return;
    at.started = true;
    const bool ends_alone = event.end && !streams_.empty() && streams_[index].called();
    if (deltas.empty() || ends_alone) deltas.emplace_back("{}");
    for (std::size_t i = 0; i < deltas.size(); ++i)
      out += chunk_of(index, at, deltas[i], event, i == 0, i + 1 == deltas.size());
  }

  std::vector<std::string> deltas_of(std::size_t index, const generation_event& event) {
    if (!streams_.empty()) return streams_[index].feed(event.text, event.end.has_value());
    if (event.text.empty()) return {};
    json_writer content;
    content.begin_object().key("content").string(event.text).end_object();
    return {content.take()};
  }

  // An event's tokens go with its first chunk, its end with the last one. What is said of the prompt is said once, as
  // in a whole answer.
  std::string chunk_of(std::size_t index, choice& at, std::string_view delta, const generation_event& event, bool first,
                       bool last) {
    static const generation_event nothing;
    const generation_event& tokens = first ? event : nothing;
    json_writer chunk;
    open_chunk(chunk, index);
    chunk.key("delta").raw(delta).key("logprobs");
    write_logprobs(chunk, tokens.logprobs);
    if (last && event.end) {
      write_finish(chunk, *event.end, reason_of(*event.end, !streams_.empty() && streams_[index].called()));
    } else {
      write_finish(chunk, std::nullopt);
    }
    if (format_.return_token_ids) {
      chunk.key("token_ids");
      write_tokens(chunk, tokens.tokens);
    }
    chunk.end_object().end_array();
    if (index == 0) write_prompt_part(chunk, tokens, at);
    return close_chunk(chunk, last && complete());
  }

  // As OpenAI: whoever named the function knows that it was called, and hears "stop".
  std::string_view reason_of(const tandem::finish& end, bool called) const {
    const bool says_calls = called && end.reason == finish_reason::stop && !format_.tools.by_name;
    return says_calls ? "tool_calls" : name_of(end.reason);
  }

  std::string id_stem(std::size_t index) const { return fmt::format("{}{}_", context_.call_id_stem, index); }

  void open_chunk(json_writer& out, std::size_t index) {
    out.begin_object();
    write_identity(out, "chat.completion.chunk");
    out.key("choices").begin_array().begin_object().key("index").integer(static_cast<std::int64_t>(index));
  }

  std::string close_chunk(json_writer& out, bool last) {
    if (format_.include_usage) out.key("usage").null();
    if (format_.include_timings && last) {
      out.key("timings");
      write_timings(out, counts_);
    }
    out.end_object();
    return sse_event(out.take());
  }

  void write_logprobs(json_writer& out, const std::vector<token_logprobs>& tokens) {
    if (!format_.logprobs) {
      out.null();
      return;
    }
    out.begin_object().key("content");
    write_chat_logprobs(out, tokens, context_.texts);
    out.end_object();
  }

  void write_choice(json_writer& out, std::size_t index) {
    const choice& at = choices_[index];
    TANDEM_ASSERT(at.end);
    out.begin_object().key("index").integer(static_cast<std::int64_t>(index));
    tool_message message{at.text, {}};
    if (format_.tools.wanted()) message = parse_tool_message(at.text, format_.tools);
    out.key("message");
    write_tool_message(out, message, id_stem(index));
    out.key("logprobs");
    write_logprobs(out, at.logprobs);
    write_finish(out, *at.end, reason_of(*at.end, !message.calls.empty()));
    if (format_.return_token_ids) {
      out.key("token_ids");
      write_tokens(out, at.tokens);
    }
    out.end_object();
  }

  std::vector<chat_call_stream> streams_;  // by choice; empty: text stays as it is
};

}  // namespace

std::unique_ptr<api_answer> make_chat_answer(const answer_format& format, answer_context context) {
  return std::make_unique<chat_answer>(format, std::move(context));
}

}  // namespace tandem::net

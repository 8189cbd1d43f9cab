// Answers of POST /v1/completions.

#include "core/assert.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

class completion_answer final : public api_answer {
 public:
  using api_answer::api_answer;
  std::string_view content_type() const override { return format_.stream ? "text/event-stream" : "application/json"; }
  std::string_view ping() const override { return kSsePing; }

  std::string begin() override {
    std::string out;
    for (std::size_t i = 0; format_.echo && i < choices_.size(); ++i) {
      generation_event prompt;
      prompt.text = prompt_shown(i / static_cast<std::size_t>(format_.n));
      out += chunk(i, prompt, choices_[i], false);
    }
    return out;
  }

  std::string finish() override {
    std::string out;
    if (format_.include_usage) {
      json_writer usage;
      usage.begin_object();
      write_identity(usage, "text_completion");
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
    write_identity(out, "text_completion");
    out.key("choices").begin_array();
    for (std::size_t i = 0; i < choices_.size(); ++i) write_choice(out, i);
    out.end_array().key("usage");
    write_usage(out, counts_);
    if (format_.include_timings) {
      out.key("timings");
      write_timings(out, counts_);
    }
    out.end_object();
    return out.take();
  }

 private:
  void show(std::size_t index, const generation_event& event, choice& at, std::string& out) override {
    const bool tokens_wanted = format_.logprobs || format_.return_token_ids;
    const bool prompt_part = scores_prompt(event) || (format_.echo && !event.prompt_logprobs.empty());
    if (event.text.empty() && !event.end && !prompt_part && !(tokens_wanted && !event.tokens.empty())) return;
    out += chunk(index, event, at, true);
  }

  std::string chunk(std::size_t index, const generation_event& event, choice& at, bool with_tokens) {
    json_writer out;
    out.begin_object();
    write_identity(out, "text_completion");
    out.key("choices").begin_array().begin_object();
    out.key("index").integer(static_cast<std::int64_t>(index)).key("text").string(event.text).key("logprobs");
    if (with_tokens) {
      write_logprobs(out, index, event.prompt_logprobs, event.logprobs, at);
    } else {
      out.null();
    }
    write_finish(out, event.end);
    write_prompt_part(out, event, at);
    if (format_.return_token_ids) write_ids(out, index, event.tokens, !at.started);
    at.started = true;
    out.end_object().end_array();
    if (format_.include_usage) out.key("usage").null();
    if (format_.include_timings && complete()) {
      out.key("timings");
      write_timings(out, counts_);
    }
    out.end_object();
    return sse_event(out.take());
  }

  void write_ids(json_writer& out, std::size_t index, const std::vector<token_id>& tokens, bool with_prompt) {
    if (with_prompt) {
      out.key("prompt_token_ids");
      write_tokens(out, prompt_ids(index));
    }
    out.key("token_ids");
    write_tokens(out, tokens);
  }

  // With echo those of the prompt come first, its first token without a value.
  void write_logprobs(json_writer& out, std::size_t index, const std::vector<token_logprobs>& prompt,
                      const std::vector<token_logprobs>& output, choice& at) {
    if (!format_.logprobs) {
      out.null();
      return;
    }
    std::vector<token_logprobs> all;
    if (format_.echo && at.text_offset == 0 && !prompt_ids(index).empty()) {
      all.push_back({});
      all.back().token = prompt_ids(index).front();
    }
    if (format_.echo) all.insert(all.end(), prompt.begin(), prompt.end());
    all.insert(all.end(), output.begin(), output.end());
    write_completion_logprobs(out, all, context_.texts, at.text_offset);
  }

  void write_choice(json_writer& out, std::size_t index) {
    choice& at = choices_[index];
    TANDEM_ASSERT(at.end);
    const std::string shown = format_.echo ? prompt_shown(index / static_cast<std::size_t>(format_.n)) : "";
    out.begin_object().key("index").integer(static_cast<std::int64_t>(index));
    out.key("text").string(shown + at.text).key("logprobs");
    write_logprobs(out, index, at.prompt_logprobs, at.logprobs, at);
    write_finish(out, at.end);
    if (format_.prompt_logprobs) {
      out.key("prompt_logprobs");
      write_prompt_logprobs(out, at.prompt_logprobs, context_.texts);
    }
    if (format_.return_token_ids) write_ids(out, index, at.tokens, true);
    out.end_object();
  }
};

}  // namespace

std::unique_ptr<api_answer> make_completion_answer(const answer_format& format, answer_context context) {
  return std::make_unique<completion_answer>(format, std::move(context));
}

}  // namespace tandem::net

// Answers of POST /generate (vLLM's demo API): cumulative texts, one line of JSON per burst when streamed.

#include <utility>

#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

class generate_answer final : public api_answer {
 public:
  using api_answer::api_answer;
  std::string_view content_type() const override {
    return format_.stream ? "application/x-ndjson" : "application/json";
  }

  std::string flush() override {
    if (!changed_) return {};
    changed_ = false;
    return whole() + "\n";
  }
  std::string finish() override { return flush(); }
  std::string fail(const error& reason) override { return error_json(reason) + "\n"; }

  std::string whole() override {
    json_writer out;
    out.begin_object().key("text").begin_array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      out.string(prompt_shown(i / static_cast<std::size_t>(format_.n)) + choices_[i].text);
    }
    out.end_array();
    if (format_.return_token_ids) write_ids(out);
    write_logprobs(out);
    if (format_.include_timings && complete()) {
      out.key("timings");
      write_timings(out, counts_);
    }
    out.end_object();
    return out.take();
  }

 private:
  bool keeps_output() const override { return true; }

  void show(std::size_t, const generation_event& event, choice&, std::string&) override {
    const bool tells_tokens = format_.return_token_ids || (format_.logprobs && !event.logprobs.empty());
    changed_ = changed_ || !event.text.empty() || event.end || tells_tokens || scores_prompt(event);
  }

  // Unlike texts they are not said again in every line of a stream: a line has those of the tokens that are new in it.
  void write_logprobs(json_writer& out) {
    if (format_.logprobs) {
      out.key("logprobs").begin_array();
      for (choice& each : choices_) {
        write_logprob_maps(out, each.logprobs, context_.texts);
        each.logprobs.clear();
      }
      out.end_array();
    }
    if (format_.prompt_logprobs) write_prompt_parts(out);
  }

  void write_prompt_parts(json_writer& out) {
    out.key("prompt_logprobs").begin_array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      choice& each = choices_[i];
      if (i % static_cast<std::size_t>(format_.n) == 0)
        write_prompt_logprobs(out, each.prompt_logprobs, context_.texts, !std::exchange(each.prompt_begun, true));
      each.prompt_logprobs.clear();
    }
    out.end_array();
  }

  void write_ids(json_writer& out) const {
    out.key("prompt_token_ids").begin_array();
    for (const auto& prompt : prompts_) write_tokens(out, *prompt);
    out.end_array().key("token_ids").begin_array();
    for (const choice& each : choices_) write_tokens(out, each.tokens);
    out.end_array();
  }

  bool changed_ = false;
};

}  // namespace

std::unique_ptr<api_answer> make_generate_answer(const answer_format& format, answer_context context) {
  return std::make_unique<generate_answer>(format, std::move(context));
}

}  // namespace tandem::net

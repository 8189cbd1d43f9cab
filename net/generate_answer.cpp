// Answers of POST /generate (vLLM's demo API): cumulative texts, one line of JSON per burst when streamed.

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
    changed_ = changed_ || !event.text.empty() || event.end || format_.return_token_ids;
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

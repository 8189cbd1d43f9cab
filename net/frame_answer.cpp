// Answers of GET /ws: one JSON object per event.

#include "net/openai_answers.hpp"
#include "text/draft_runs.hpp"

namespace tandem::net {
namespace {

class frame_answer final : public api_answer {
 public:
  frame_answer(const answer_format& format, answer_context context, std::string id_json)
      : api_answer(format, std::move(context)), id_json_(std::move(id_json)), runs_(choices_.size()) {}
  std::string_view content_type() const override { return "application/json"; }
  std::string finish() override { return {}; }
  std::string whole() override { return {}; }

  std::string fail(const error& reason) override {
    const std::string body = error_json(reason);
    return "{\"id\":" + id_json_ + "," + body.substr(1) + "\n";
  }

 private:
  void show(std::size_t index, const generation_event& event, choice& at, std::string& out) override {
    const bool prompt_part = index == 0 && scores_prompt(event);
    if (event.text.empty() && event.tokens.empty() && !event.end && !prompt_part) return;
    if (event.end && event.end->reason == finish_reason::error) return;  // fail() tells
    json_writer frame;
    frame.begin_object().key("id").raw(id_json_);
    if (format_.n > 1) frame.key("index").integer(static_cast<std::int64_t>(index));
    frame.key("text").string(event.text).key("token_ids");
    write_tokens(frame, event.tokens);
    if (format_.logprobs) write_logprob_maps(frame.key("logprobs"), event.logprobs, context_.texts);
    if (index == 0) write_prompt_part(frame, event, at);
    if (format_.include_drafts) write_drafts(frame, event, runs_[index]);
    if (event.end) write_finish(frame, event.end);
    if (complete()) {
      frame.key("usage");
      write_usage(frame, counts_);
    }
    if (complete() && format_.include_timings) {
      frame.key("timings");
      write_timings(frame, counts_);
    }
    frame.end_object();
    out += frame.take() + "\n";
  }

  // [begin, end) in characters of this frame's text.
  void write_drafts(json_writer& out, const generation_event& event, text::draft_runs& runs) const {
    const auto& bytes = format_.skip_special_tokens ? context_.texts.visible : context_.texts.bytes;
    for (std::size_t i = 0; i < event.tokens.size(); ++i)
      runs.add_token(bytes(event.tokens[i]), i < event.accepted.size() && event.accepted[i] != 0);
    out.key("drafts").begin_array();
    std::int64_t at = 0;
    for (const text::text_run& run : runs.take(event.text)) {
      const std::int64_t end = at + static_cast<std::int64_t>(run.characters);
      if (run.drafted) out.begin_array().integer(at).integer(end).end_array();
      at = end;
    }
    out.end_array();
  }

  std::string id_json_;
  std::vector<text::draft_runs> runs_;  // by choice
};

}  // namespace

std::unique_ptr<api_answer> make_frame_answer(const answer_format& format, answer_context context,
                                              std::string id_json) {
  return std::make_unique<frame_answer>(format, std::move(context), std::move(id_json));
}

}  // namespace tandem::net

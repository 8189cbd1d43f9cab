// Answers of GET /ws: one JSON object per event.

#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

class frame_answer final : public api_answer {
 public:
  frame_answer(const answer_format& format, answer_context context, std::string id_json)
      : api_answer(format, std::move(context)), id_json_(std::move(id_json)) {}
  std::string_view content_type() const override { return "application/json"; }
  std::string finish() override { return {}; }
  std::string whole() override { return {}; }

  std::string fail(const error& reason) override {
    const std::string body = error_json(reason);
    return "{\"id\":" + id_json_ + "," + body.substr(1) + "\n";
  }

 private:
  void show(std::size_t index, const generation_event& event, choice&, std::string& out) override {
    if (event.text.empty() && event.tokens.empty() && !event.end) return;
    if (event.end && event.end->reason == finish_reason::error) return;  // fail() tells
    json_writer frame;
    frame.begin_object().key("id").raw(id_json_);
    if (format_.n > 1) frame.key("index").integer(static_cast<std::int64_t>(index));
    frame.key("text").string(event.text).key("token_ids");
    write_tokens(frame, event.tokens);
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

  std::string id_json_;
};

}  // namespace

std::unique_ptr<api_answer> make_frame_answer(const answer_format& format, answer_context context,
                                              std::string id_json) {
  return std::make_unique<frame_answer>(format, std::move(context), std::move(id_json));
}

}  // namespace tandem::net

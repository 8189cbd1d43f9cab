#include "net/responses/response_answer.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/assert.hpp"
#include "net/endpoints.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {
namespace {

class response_answer final : public api_answer {
 public:
  response_answer(const answer_format& format, answer_context context, std::shared_ptr<response_draft> draft)
      : api_answer(format, std::move(context)), draft_(std::move(draft)) {
    if (format_.tools.wanted()) parser_ = make_tool_call_parser(format_.tools);
  }

  std::string_view content_type() const override { return format_.stream ? "text/event-stream" : "application/json"; }

  std::string begin() override {
    std::string events;
    draft_->begin(events);
    return events;
  }

  std::string finish() override {
    std::string events;
    TANDEM_ASSERT(choices_.front().end);
    tell_tokens();
    draft_->end(*choices_.front().end, counts_, unix_seconds(), events);
    return events;
  }

  std::string fail(const error& reason) override {
    std::string events;
    draft_->fail(reason, events);
    return events;
  }

  std::string whole() override {
    std::string unread;
    add_whole(unread);
    tell_tokens();
    draft_->end(*choices_.front().end, counts_, unix_seconds(), unread);
    return draft_->object_json();
  }

 private:
  void show(std::size_t, const generation_event& event, choice&, std::string& out) override {
    if (event.end && event.end->reason == finish_reason::error) return;  // fail() tells
    if (!parser_) return draft_->add_text(event.text, event.logprobs, out);
    held_logprobs_.insert(held_logprobs_.end(), event.logprobs.begin(), event.logprobs.end());
    for (const tool_event& piece : parser_->feed(event.text)) add(piece, out);
    if (!event.end) return;
    for (const tool_event& piece : parser_->finish()) add(piece, out);
  }

  bool keeps_output() const override { return !format_.stream || format_.return_token_ids; }

  void tell_tokens() {
    if (format_.return_token_ids) draft_->set_tokens(prompt_ids(0), choices_.front().tokens);
  }

  // Log-probabilities go with the first words behind them; those of a call's tokens are not told.
  void add(const tool_event& piece, std::string& out) {
    switch (piece.what) {
      case tool_event::kind::content:
        return draft_->add_text(piece.text, std::exchange(held_logprobs_, {}), out);
      case tool_event::kind::begin:
        held_logprobs_.clear();
        return draft_->begin_call(next_call_id(), piece.text, out);
      case tool_event::kind::arguments:
        return draft_->add_arguments(piece.text, out);
      case tool_event::kind::complete:
        return draft_->end_call(true, out);
      case tool_event::kind::malformed:
        return draft_->end_call(false, out);
    }
  }

  // A call that turns out malformed is text, which a stream could not know when it began.
  void add_whole(std::string& out) {
    const choice& at = choices_.front();
    if (!parser_) return draft_->add_text(at.text, at.logprobs, out);
    const tool_message message = parse_tool_message(at.text, format_.tools);
    if (!message.content.empty()) draft_->add_text(message.content, at.logprobs, out);
    for (const tool_message::call& call : message.calls) {
      draft_->begin_call(next_call_id(), call.name, out);
      draft_->add_arguments(call.arguments, out);
      draft_->end_call(true, out);
    }
  }

  std::string next_call_id() { return fmt::format("{}{}", context_.call_id_stem, calls_++); }

  std::shared_ptr<response_draft> draft_;
  std::unique_ptr<tool_call_parser> parser_;  // null: text stays as it is
  std::vector<token_logprobs> held_logprobs_;
  int calls_ = 0;
};

}  // namespace

std::unique_ptr<api_answer> make_response_answer(const answer_format& format, answer_context context,
                                                 std::shared_ptr<response_draft> draft) {
  return std::make_unique<response_answer>(format, std::move(context), std::move(draft));
}

}  // namespace tandem::net

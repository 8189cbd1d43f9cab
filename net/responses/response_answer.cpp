#include "net/responses/response_answer.hpp"

#include <utility>

#include "core/assert.hpp"
#include "net/endpoints.hpp"

namespace tandem::net {
namespace {

class response_answer final : public api_answer {
 public:
  response_answer(const answer_format& format, answer_context context, std::shared_ptr<response_draft> draft)
      : api_answer(format, std::move(context)), draft_(std::move(draft)) {}

  std::string_view content_type() const override { return format_.stream ? "text/event-stream" : "application/json"; }

  std::string begin() override {
    std::string events;
    draft_->begin(events);
    return events;
  }

  std::string finish() override {
    std::string events;
    TANDEM_ASSERT(choices_.front().end);
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
    draft_->add_text(choices_.front().text, choices_.front().logprobs, unread);
    draft_->end(*choices_.front().end, counts_, unix_seconds(), unread);
    return draft_->object_json();
  }

 private:
  void show(std::size_t, const generation_event& event, choice&, std::string& out) override {
    if (event.end && event.end->reason == finish_reason::error) return;  // fail() tells
    draft_->add_text(event.text, event.logprobs, out);
  }

  std::shared_ptr<response_draft> draft_;
};

}  // namespace

std::unique_ptr<api_answer> make_response_answer(const answer_format& format, answer_context context,
                                                 std::shared_ptr<response_draft> draft) {
  return std::make_unique<response_answer>(format, std::move(context), std::move(draft));
}

}  // namespace tandem::net

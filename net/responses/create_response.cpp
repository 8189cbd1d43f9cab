// POST /v1/responses.

#include <utility>

#include "net/endpoints.hpp"
#include "net/openai_answers.hpp"
#include "net/responses/event_stream.hpp"
#include "net/responses/response_run.hpp"
#include "net/responses/response_store.hpp"

namespace tandem::net {
namespace {

/// Answered with what was made. Owner: the session.
class create_call final : public event_stream, public response_listener {
 public:
  using event_stream::event_stream;
  bool start(std::shared_ptr<response_run> run) {
    run_ = std::move(run);
    return run_->start(*this);
  }
  void abandon() override {
    event_stream::abandon();
    run_->cancel();
  }

 private:
  void on_begun(response_run& run) override { follow(run.record(), 0); }
  void on_ended(response_run&) override { pass_on(); }
  void on_whole(response_run& run, http_response response) override {
    response.headers.emplace_back("X-Request-Id", run.record()->id());
    if (const auto channel = channel_.lock()) channel->send(std::move(response));
  }

  std::shared_ptr<response_run> run_;
};

/// Answered when the prompt was accepted, with events if they are wanted; what is made goes on without its client and
/// is kept. Owner: the session.
class background_call final : public event_stream, public response_listener {
 public:
  using event_stream::event_stream;
  bool start(std::shared_ptr<response_run> run) {
    run_ = std::move(run);
    return run_->start(*this);
  }
  void abandon() override {
    event_stream::abandon();
    if (run_) std::exchange(run_, nullptr)->cancel();  // nobody knows of it yet
  }

 private:
  void on_begun(response_run& run) override {
    const auto kept = std::exchange(run_, nullptr);
    const auto channel = channel_.lock();
    if (!channel) return run.cancel();
    run.go_on(channel->hand_over_lease());
    if (run.request().events_wanted) {
      follow(run.record(), 0);
      return;
    }
    http_response response;
    response.headers = {{"X-Request-Id", run.record()->id()}};
    response.body = run.record()->object_json();
    channel->send(std::move(response));
  }
  void on_ended(response_run&) override {}
  void on_whole(response_run& run, http_response response) override {
    const auto refused = std::exchange(run_, nullptr);
    response.headers.emplace_back("X-Request-Id", run.record()->id());
    if (const auto channel = channel_.lock()) channel->send(std::move(response));
  }

  std::shared_ptr<response_run> run_;  // until it goes on alone
};

// Null when the run's id is taken.
template <class Call>
answered start_call(io_lane& lane, const std::weak_ptr<response_channel>& channel, std::shared_ptr<response_run> run) {
  const auto call = std::make_shared<Call>(lane, channel);
  return call->start(std::move(run)) ? call : nullptr;
}

answered refuse_create(io_lane& lane, const std::weak_ptr<response_channel>& channel, const error& reason) {
  lane.engine->count_rejected("invalid");
  if (const auto open = channel.lock()) open->send(error_response(reason));
  return nullptr;
}

}  // namespace

answered answer_create_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  auto id = chosen_id(lane, request, "resp_");
  if (!id) return refuse_create(lane, channel, id.error());
  auto parsed = parse_response(request.body, request.header("X-Request-Timeout-Ms"), lane.facts);
  if (!parsed) return refuse_create(lane, channel, parsed.error());
  request.body = {};  // may be large, and the answer may take long
  auto before = conversation_before(lane.edge.responses, parsed->previous_id);
  if (!before) return refuse_create(lane, channel, before.error());
  const bool background = parsed->background;
  auto run = std::make_shared<response_run>(lane, std::make_shared<const response_request>(std::move(*parsed)),
                                            std::move(*before), std::move(*id));
  auto call = background ? start_call<background_call>(lane, channel, std::move(run))
                         : start_call<create_call>(lane, channel, std::move(run));
  if (call) return call;
  return refuse_create(lane, channel,
                       {error_code::invalid_argument, "A response with this X-Request-Id exists.", "X-Request-Id"});
}

}  // namespace tandem::net

#include "net/responses/response_run.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "net/endpoints.hpp"
#include "net/responses/response_answer.hpp"

namespace tandem::net {
namespace asio = boost::asio;

namespace {

response_identity identity_of(const response_request& request, const std::string& id) {
  return {id,
          request.previous_id,
          unix_seconds(),
          request.settings_json,
          request.call.logprobs,
          request.call.include_timings,
          request.call.return_token_ids};
}

}  // namespace

response_run::response_run(io_lane& lane, std::shared_ptr<const response_request> request, std::string conversation,
                           std::string id)
    : lane_(lane),
      request_(std::move(request)),
      said_(join_messages(conversation, request_->input.messages)),
      draft_(std::make_shared<response_draft>(identity_of(*request_, id), texts_of(lane.engine))),
      record_(std::make_shared<response_record>(id, request_->input.items)) {
  api_request call = compose(*request_, conversation);
  auto answer = make_response_answer(
      call, {id, draft_->identity().created, texts_of(lane.engine), fresh_id("call_") + "_"}, draft_);
  work_ = std::make_shared<generation>(lane, std::move(call), std::move(answer), std::move(id));
}

response_run::~response_run() {
  if (!done_) work_->cancel();
}

bool response_run::start(response_listener& listener) {
  if (!lane_.edge.responses.add(record_)) return false;
  lane_.runs.insert(shared_from_this());
  listener_ = &listener;
  if (!request_->generate) {
    prepare_only(listener);
    return true;
  }
  record_->set_object(draft_->object_json());
  work_->start(*this);
  return true;
}

// `generate: false`: the state is kept for a later response, and nothing is made.
void response_run::prepare_only(response_listener& listener) {
  std::string events;
  draft_->begin(events);
  draft_->end_empty(unix_seconds(), events);
  listener_ = nullptr;
  const auto self = shared_from_this();
  conclude(events);
  if (request_->call.stream) {
    listener.on_begun(*this);
    return listener.on_ended(*this);
  }
  http_response response;
  response.body = draft_->object_json();
  listener.on_whole(*this, std::move(response));
}

void response_run::on_begin(std::string events) {
  begun_ = true;
  record_->append(events);
  if (listener_ != nullptr) listener_->on_begun(*this);
}

void response_run::on_finish(std::string events) {
  response_listener* const listener = std::exchange(listener_, nullptr);
  const auto self = shared_from_this();
  conclude(events);
  if (listener != nullptr) listener->on_ended(*this);
}

void response_run::on_whole(http_response response) {
  response_listener* const listener = std::exchange(listener_, nullptr);
  const auto self = shared_from_this();
  if (response.status == 200) {
    conclude({});
  } else {
    abandon_record();
  }
  if (listener != nullptr) listener->on_whole(*this, std::move(response));
}

void response_run::conclude(std::string_view last_events) {
  lease_ = {};  // before anyone can know that it has ended
  record_->conclude(last_events, draft_->object_json(), join_messages(said_, draft_->take_messages()));
  lane_.edge.responses.settle(record_->id(), request_->store, std::chrono::steady_clock::now());
  leave();
}

// May be called from inside the generation: destroyed behind this turn.
void response_run::leave() {
  done_ = true;
  asio::post(lane_.context, [self = shared_from_this()] {});
  lane_.runs.erase(shared_from_this());
}

void response_run::end_for_steering() {
  draft_->mark_steered();
  work_->end();
}

void response_run::cancel() {
  if (done_) return;
  listener_ = nullptr;
  const auto self = shared_from_this();
  work_->cancel();
  std::string events;
  if (begun_) {
    draft_->end_cancelled(unix_seconds(), events);
    return conclude(events);
  }
  abandon_record();
}

// Refused or cancelled before it began: there is nothing to be kept, and who waits for its end hears of it.
void response_run::abandon_record() {
  lease_ = {};
  std::string unread;
  draft_->end_cancelled(unix_seconds(), unread);
  record_->conclude({}, draft_->object_json(), {});
  lane_.edge.responses.remove(record_->id());
  leave();
}

void response_run::let_go() {
  if (done_) return;
  listener_ = nullptr;
  if (!request_->store || !begun_) return cancel();
  watch_readers();
}

void response_run::go_on(key_lease lease) {
  listener_ = nullptr;
  if (!done_) lease_ = std::move(lease);
}

// The timer lives in its own handler, so that it goes with the lane's queue.
void response_run::watch_readers() {
  const auto timer = std::make_shared<asio::steady_timer>(lane_.context, lane_.edge.options.timeouts.detached);
  timer->async_wait([timer, weak = weak_from_this()](const boost::system::error_code& reason) {
    const auto self = weak.lock();
    if (reason || !self || self->done_) return;
    if (!self->record_->has_readers()) return self->cancel();
    self->watch_readers();
  });
}

}  // namespace tandem::net

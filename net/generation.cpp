#include "net/generation.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/assert.hpp"

namespace tandem::net {

generation::generation(io_lane& lane, api_request request, std::unique_ptr<api_answer> answer, std::string public_id)
    : lane_(lane),
      engine_(lane.engine),
      request_(std::move(request)),
      answer_(std::move(answer)),
      public_id_(std::move(public_id)) {
  TANDEM_ASSERT(engine_ && answer_);
}

generation::~generation() {
  cancel();
}

void generation::start(generation_listener& listener) {
  TANDEM_ASSERT(listener_ == nullptr && !request_.prompts.empty());
  listener_ = &listener;
  std::vector<request_id> ids;
  for (std::size_t i = 0; i < request_.prompts.size(); ++i) {
    request_.prompts[i].external_id = public_id_;
    const request_id id = engine_->submit(std::move(request_.prompts[i]), lane_.door);
    // Its answer is a task behind this one: no event can come before watch().
    lane_.door->watch(id, weak_from_this());
    prompt_of_.emplace(id, i);
    open_choices_.emplace(id, request_.n);
    ids.push_back(id);
  }
  request_.prompts.clear();
  registered_ = lane_.edge.calls.add(public_id_, std::move(ids));
}

void generation::on_answer(submission_answer answer) {
  if (listener_ == nullptr) return;
  if (answer.refused && answer.refused->code == error_code::cancelled) return end_unstarted(answer.id);
  if (answer.refused) {
    prompt_of_.erase(answer.id);
    lane_.door->forget(answer.id);
    return refuse(*answer.refused);
  }
  const auto found = prompt_of_.find(answer.id);
  if (found == prompt_of_.end()) return;
  answer_->accept(found->second, std::move(answer.prompt));
  if (answer_->accepted()) begin();
}

// Cancelled in the queue: to its client it has ended, like one that was cancelled a step later.
void generation::end_unstarted(request_id id) {
  const auto found = prompt_of_.find(id);
  if (found == prompt_of_.end()) return;
  answer_->accept(found->second, std::make_shared<const std::vector<token_id>>());
  for (std::int32_t choice = 0; choice < request_.n; ++choice) {
    generation_event last;
    last.id = id;
    last.choice = choice;
    last.end.emplace().reason = finish_reason::cancelled;
    on_event(std::move(last));
  }
  if (answer_->accepted()) begin();
  on_burst_end();
}

void generation::begin() {
  begun_ = true;
  if (!request_.stream) return;
  std::string early = std::exchange(pending_, {});  // events of prompts that were accepted before others
  listener_->on_begin(answer_->begin() + early);
}

void generation::on_event(generation_event event) {
  if (listener_ == nullptr) return;
  const auto found = prompt_of_.find(event.id);
  if (found == prompt_of_.end()) return;
  const std::size_t prompt = found->second;
  const request_id id = event.id;
  const bool ended = event.end.has_value();
  answer_->append(prompt, std::move(event), pending_);
  if (!ended || --open_choices_[id] > 0) return;
  prompt_of_.erase(id);
  lane_.door->forget(id);
}

void generation::on_burst_end() {
  if (listener_ == nullptr) return;
  if (answer_->failure() || (begun_ && answer_->complete())) return conclude();
  if (!request_.stream || !begun_) return;
  pending_ += answer_->flush();
  if (!pending_.empty()) listener_->on_bytes(std::exchange(pending_, {}));
}

// Everything is freed before the listener's last word: it may destroy this.
void generation::conclude() {
  const auto self = shared_from_this();
  const std::optional<error> failure = answer_->failure();
  cancel_requests();
  leave();
  generation_listener& listener = *std::exchange(listener_, nullptr);
  if (request_.stream && begun_) {
    std::string bytes = std::exchange(pending_, {});
    if (failure) return listener.on_broken(bytes + answer_->fail(*failure));
    return listener.on_finish(bytes + answer_->finish());
  }
  if (failure) return listener.on_whole(error_response(*failure));
  http_response response;
  response.body = answer_->whole();
  listener.on_whole(std::move(response));
}

void generation::refuse(const error& reason) {
  const auto self = shared_from_this();
  cancel_requests();
  leave();
  std::exchange(listener_, nullptr)->on_whole(error_response(reason));
}

void generation::cancel() {
  listener_ = nullptr;
  cancel_requests();
  leave();
}

void generation::end() {
  for (const auto& [id, prompt] : prompt_of_) engine_->cancel(id);
}

void generation::cancel_requests() {
  for (const auto& [id, prompt] : std::exchange(prompt_of_, {})) {
    lane_.door->forget(id);
    engine_->cancel(id);
  }
}

void generation::leave() {
  if (std::exchange(registered_, false)) lane_.edge.calls.remove(public_id_);
}

}  // namespace tandem::net

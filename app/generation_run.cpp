#include "app/generation_run.hpp"

#include "core/assert.hpp"

namespace tandem::app {

generation_run::generation_run(engine::client& client, piece_listener on_piece)
    : client_(client), on_piece_(std::move(on_piece)) {}

void generation_run::submit(generation_request request) {
  const auto entry = std::make_shared<pending>(request.n);
  engine::request_handlers handlers;
  handlers.answer = [this, entry](const submission_answer& answer) {
    const std::lock_guard lock(mutex_);
    entry->answer.add(answer);
    changed_.notify_all();
  };
  handlers.event = [this, entry](generation_event event) {
    if (on_piece_) on_piece_(event);
    const std::lock_guard lock(mutex_);
    entry->answer.add(std::move(event));
    changed_.notify_all();
  };
  const request_id id = client_.submit(std::move(request), std::move(handlers));
  const std::lock_guard lock(mutex_);
  entry->id = id;
  requests_.push_back(entry);
  if (cancelled_) client_.cancel(id);
}

engine::collected_answer generation_run::take_oldest() {
  std::unique_lock lock(mutex_);
  TANDEM_ASSERT(!requests_.empty());
  const std::shared_ptr<pending> oldest = requests_.front();
  changed_.wait(lock, [&] { return oldest->answer.complete(); });
  requests_.pop_front();
  return std::move(oldest->answer);
}

void generation_run::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (const auto& entry : requests_) client_.cancel(entry->id);
}

bool generation_run::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

}  // namespace tandem::app

#include "actors/call_thread.hpp"

#include <utility>

namespace tandem {

call_thread::call_thread(std::size_t most_queued) : most_queued_(most_queued), thread_([this] { work(); }) {}

call_thread::~call_thread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

bool call_thread::push(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || queue_.size() >= most_queued_) return false;
    queue_.push_back(std::move(call));
  }
  changed_.notify_one();
  return true;
}

void call_thread::work() {
  for (;;) {
    std::function<void()> call;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (closing_) return;
      call = std::move(queue_.front());
      queue_.pop_front();
    }
    call();
  }
}

}  // namespace tandem

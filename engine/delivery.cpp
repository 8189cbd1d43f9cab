#include "engine/delivery.hpp"

#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::engine {
namespace {

struct attachment {
  request_id id;
  std::int32_t choices = 1;
  request_handlers handlers;
};
using item = std::variant<submission_answer, generation_event, attachment>;

request_id id_of(const item& entry) {
  return std::visit([](const auto& value) { return value.id; }, entry);
}

/// One request as the delivery thread sees it.
struct recipient {
  bool attached = false;
  std::int32_t choices_left = 0;
  request_handlers handlers;
  std::deque<item> early;  // came before attach(); the submitting thread is on its way
};

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void join_events(generation_event& piece, generation_event next) {
  TANDEM_ASSERT(!piece.end);  // nothing follows an end
  piece.text += next.text;
  append(piece.tokens, std::move(next.tokens));
  append(piece.accepted, std::move(next.accepted));
  append(piece.logprobs, std::move(next.logprobs));
  append(piece.prompt_logprobs, std::move(next.prompt_logprobs));
  piece.end = std::move(next.end);
  piece.stats = next.stats;
}

struct delivery::impl {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<item> queue;
  std::condition_variable emptied;
  bool delivering = false;
  bool stopping = false;
  std::unordered_map<request_id, recipient> recipients;  // delivery thread only
  std::thread thread;

  void push(item entry) {
    {
      const std::lock_guard lock(mutex);
      queue.push_back(std::move(entry));
    }
    arrived.notify_one();
  }

  /// With the lock held: whether the event could be joined to one that waits.
  bool joined(generation_event& event) {
    if (queue.size() < limits::kMaxUndeliveredEvents) return false;
    for (auto waiting = queue.rbegin(); waiting != queue.rend(); ++waiting) {
      auto* piece = std::get_if<generation_event>(&*waiting);
      if (piece == nullptr || piece->id != event.id || piece->choice != event.choice) continue;
      join_events(*piece, std::move(event));
      return true;
    }
    return false;
  }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      arrived.wait(lock, [this] { return stopping || !queue.empty(); });
      if (stopping) return;
      item entry = std::move(queue.front());
      queue.pop_front();
      delivering = true;
      lock.unlock();
      deliver(std::move(entry));
      lock.lock();
      delivering = false;
      if (queue.empty()) emptied.notify_all();
    }
  }

  void deliver(item entry) {
    const request_id id = id_of(entry);
    recipient& to = recipients[id];
    if (auto* attached = std::get_if<attachment>(&entry)) {
      to.attached = true;
      to.choices_left = attached->choices;
      to.handlers = std::move(attached->handlers);
      std::deque<item> early = std::exchange(to.early, {});
      for (item& waiting : early) hand_over(id, std::move(waiting));
      return;
    }
    if (to.attached)
      hand_over(id, std::move(entry));
    else
      to.early.push_back(std::move(entry));
  }

  void hand_over(request_id id, item entry) {
    const auto found = recipients.find(id);
    if (found == recipients.end()) return;
    recipient& to = found->second;
    bool over = false;
    if (auto* answer = std::get_if<submission_answer>(&entry)) {
      over = answer->refused.has_value();
      if (to.handlers.answer) to.handlers.answer(*answer);
    } else {
      auto& event = std::get<generation_event>(entry);
      over = event.end.has_value() && --to.choices_left == 0;
      if (to.handlers.event) to.handlers.event(std::move(event));
    }
    if (over) recipients.erase(id);
  }
};

delivery::delivery() : impl_(std::make_unique<impl>()) {
  impl_->thread = std::thread([this] { impl_->run(); });
}

delivery::~delivery() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->arrived.notify_all();
  // The last owner may be a callback's own capture: a thread cannot join itself.
  TANDEM_ASSERT(impl_->thread.get_id() != std::this_thread::get_id());
  impl_->thread.join();
}

void delivery::answer(submission_answer answer) {
  impl_->push(std::move(answer));
}

void delivery::post(std::vector<generation_event> events) {
  {
    const std::lock_guard lock(impl_->mutex);
    for (generation_event& event : events)
      if (!impl_->joined(event)) impl_->queue.emplace_back(std::move(event));
  }
  impl_->arrived.notify_one();
}

void delivery::flush() {
  std::unique_lock lock(impl_->mutex);
  TANDEM_ASSERT(impl_->thread.get_id() != std::this_thread::get_id());
  impl_->emptied.wait(lock, [this] { return impl_->queue.empty() && !impl_->delivering; });
}

void delivery::attach(request_id id, std::int32_t choices, request_handlers handlers) {
  impl_->push(attachment{id, choices, std::move(handlers)});
}

}  // namespace tandem::engine

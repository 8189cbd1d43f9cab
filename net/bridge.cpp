#include "net/bridge.hpp"

#include <boost/asio/post.hpp>

namespace tandem::net {

void bridge::run(std::function<void()> task) {
  std::lock_guard lock(mutex_);
  if (context_ != nullptr) boost::asio::post(*context_, std::move(task));
}

void bridge::close() {
  std::lock_guard lock(mutex_);
  context_ = nullptr;
}

void bridge::answer(submission_answer answer) {
  run([weak = weak_from_this(), answer = std::move(answer)]() mutable {
    const auto self = weak.lock();
    if (!self) return;
    const auto found = self->sinks_.find(answer.id);
    if (found == self->sinks_.end()) return;
    if (const auto sink = found->second.lock()) sink->on_answer(std::move(answer));
  });
}

void bridge::post(std::vector<generation_event> events) {
  // std::function wants copyable captures.
  auto shared = std::make_shared<std::vector<generation_event>>(std::move(events));
  run([weak = weak_from_this(), shared = std::move(shared)] {
    if (const auto self = weak.lock()) self->deliver(std::move(*shared));
  });
}

void bridge::deliver(std::vector<generation_event> events) {
  std::vector<std::shared_ptr<event_sink>> touched;
  for (generation_event& event : events) {
    const auto found = sinks_.find(event.id);
    if (found == sinks_.end()) continue;
    auto sink = found->second.lock();
    if (!sink) continue;
    sink->on_event(std::move(event));
    if (touched.empty() || touched.back() != sink) touched.push_back(std::move(sink));
  }
  for (const auto& sink : touched) sink->on_burst_end();
}

void bridge::watch(request_id id, std::weak_ptr<event_sink> sink) {
  sinks_[id] = std::move(sink);
}

void bridge::forget(request_id id) {
  sinks_.erase(id);
}

}  // namespace tandem::net

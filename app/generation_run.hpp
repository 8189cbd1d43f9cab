#pragma once
/// Many requests through one engine, a window of them in flight, answers handed over in the order of submission.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/client.hpp"
#include "engine/collected_answer.hpp"

namespace tandem::app {

/// Used by one thread; cancel() from any.
class generation_run {
 public:
  /// Called on the delivery thread with each piece, for printing while it comes; may be empty.
  using piece_listener = std::function<void(const generation_event&)>;

  explicit generation_run(engine::client& client, piece_listener on_piece = {});

  void submit(generation_request request);
  std::size_t in_flight() const { return requests_.size(); }
  /// Waits for the oldest answer and hands it over. Only with in_flight() > 0.
  engine::collected_answer take_oldest();
  /// Ends everything in flight; answers still come, cut short.
  void cancel();
  bool cancelled() const;

 private:
  struct pending {
    request_id id;
    engine::collected_answer answer;
    explicit pending(std::int32_t choices) : answer(choices) {}
  };
  engine::client& client_;
  piece_listener on_piece_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<pending>> requests_;
  bool cancelled_ = false;
};

}  // namespace tandem::app

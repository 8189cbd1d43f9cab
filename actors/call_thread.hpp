#pragma once
/// One thread that makes calls which may block, in order, so that no actor's worker has to.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem {

/// Thread-safe.
class call_thread {
 public:
  explicit call_thread(std::size_t most_queued);
  /// Waits for the call under way; those queued are dropped.
  ~call_thread();
  call_thread(const call_thread&) = delete;
  call_thread& operator=(const call_thread&) = delete;

  /// False: too many wait already, and `call` is never made. `call` must not throw.
  bool push(std::function<void()> call);

 private:
  void work();

  std::size_t most_queued_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace tandem

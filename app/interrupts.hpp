#pragma once
/// Ctrl-C and SIGTERM, without code in a signal handler.

#include <functional>
#include <thread>

namespace tandem::app {

/// Made on the main thread before others start, so that all of them have the two signals blocked. The first signal
/// calls `on_first` on the watching thread; the second ends the process at once with status 130.
class interrupts {
 public:
  explicit interrupts(std::function<void()> on_first);
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

 private:
  void watch();
  std::function<void()> on_first_;
  int signals_ = -1;  // signalfd
  int stop_ = -1;     // eventfd
  std::thread thread_;
};

}  // namespace tandem::app

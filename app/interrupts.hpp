#pragma once
/// Ctrl-C and SIGTERM, without code in a signal handler.

#include <functional>
#include <mutex>
#include <thread>

namespace tandem::app {

/// Made on the main thread before others start (a model loads with threads), so that all of them have the two signals
/// blocked. Until arm() a signal ends the process with `status_before`; then the first one calls `on_first` on the
/// watching thread, and the second ends the process at once with status 130.
class interrupts {
 public:
  explicit interrupts(int status_before);
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// What `on_first` uses must live until the next arm() or the end of this object.
  void arm(std::function<void()> on_first);

 private:
  void watch();
  int status_before_;
  std::mutex mutex_;
  std::function<void()> on_first_;
  int signals_ = -1;  // signalfd
  int stop_ = -1;     // eventfd
  std::thread thread_;
};

}  // namespace tandem::app

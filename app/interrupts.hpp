#pragma once
/// Ctrl-C and SIGTERM, and SIGHUP where it means "read the files again", without code in a signal handler.

#include <functional>
#include <mutex>
#include <thread>

namespace tandem::app {

/// Made on the main thread before others start (a model loads with threads), so that all of them have the signals
/// blocked. Until arm() a signal ends the process with `status_before`; then the first one calls `on_first` on the
/// watching thread, and the second ends the process at once with status 130.
class interrupts {
 public:
  /// `hangups`: watch SIGHUP too, which then ends nothing.
  explicit interrupts(int status_before, bool hangups = false);
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// What `on_first` uses must live until the next arm() or the end of this object.
  void arm(std::function<void()> on_first);
  /// `on_hangup` is called on the watching thread at each SIGHUP from now on; until then they are passed over.
  void arm_hangups(std::function<void()> on_hangup);

 private:
  void watch();
  void take(unsigned signal);
  int status_before_;
  bool hangups_;
  std::mutex mutex_;
  std::function<void()> on_first_;
  std::function<void()> on_hangup_;
  bool seen_ = false;  // a first Ctrl-C or SIGTERM
  int signals_ = -1;   // signalfd
  int stop_ = -1;      // eventfd
  std::thread thread_;
};

}  // namespace tandem::app

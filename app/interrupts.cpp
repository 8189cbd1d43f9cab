#include "app/interrupts.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "app/command.hpp"
#include "core/assert.hpp"

namespace tandem::app {
namespace {

sigset_t watched_signals(bool hangups) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (hangups) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

interrupts::interrupts(int status_before, bool hangups) : status_before_(status_before), hangups_(hangups) {
  const sigset_t set = watched_signals(hangups_);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  TANDEM_ASSERT(signals_ >= 0 && stop_ >= 0);
  thread_ = std::thread([this] { watch(); });
}

interrupts::~interrupts() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_, &one, sizeof one);
  thread_.join();
  close(signals_);
  close(stop_);
  const sigset_t set = watched_signals(hangups_);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void interrupts::arm(std::function<void()> on_first) {
  const std::lock_guard lock(mutex_);
  on_first_ = std::move(on_first);
}

void interrupts::arm_hangups(std::function<void()> on_hangup) {
  const std::lock_guard lock(mutex_);
  on_hangup_ = std::move(on_hangup);
}

void interrupts::watch() {
  while (true) {
    pollfd ready[2] = {{signals_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) continue;
    if (ready[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signals_, &info, sizeof info) != sizeof info) continue;
    take(info.ssi_signo);
  }
}

void interrupts::take(unsigned signal) {
  const std::lock_guard lock(mutex_);
  if (signal == SIGHUP) {
    if (on_hangup_) on_hangup_();
    return;
  }
  if (seen_ || !on_first_) std::_Exit(seen_ ? kExitInterrupted : status_before_);
  seen_ = true;
  on_first_();
}

}  // namespace tandem::app

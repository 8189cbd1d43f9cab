#include "actors/unstoppable_thread.hpp"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

namespace tandem {
namespace {

std::atomic<int> running{0};

void end_without_statics(int status, void*) {
  if (running.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void run_unstoppable(std::function<void()> work, int niceness) {
  running.fetch_add(1);
  try {
    std::thread([work = std::move(work), niceness]() mutable {
      setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), niceness);
      work();
      work = nullptr;  // what it owns may need statics, too
      running.fetch_sub(1);
    }).detach();
  } catch (...) {
    running.fetch_sub(1);
    throw;
  }
}

/// Anew each time: what is registered last is called before the destructors of all statics that are there by then.
void leave_unstoppable() {
  on_exit(end_without_statics, nullptr);
}

}  // namespace tandem

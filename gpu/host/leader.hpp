#pragma once
/// The one thread that owns all computing of a device, and the queues of its streams. Draft work goes first; an
/// item whose tickets are open waits in its queue, bounded by limits::kTicketExpiry, and keeps nobody from running.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/ticket.hpp"

namespace tandem::gpu::host {

/// One launch. Exactly one of `run` and `drop` is called, on the leader thread; neither may throw.
struct leader_item {
  struct timing {
    std::chrono::steady_clock::time_point taken;  ///< the item became its stream's first
    std::chrono::nanoseconds ticket_wait{0};      ///< until its tickets had settled
  };
  std::function<void(const timing&)> run;
  std::function<void()> drop;
  std::vector<std::shared_ptr<ticket>> tickets;  ///< settled before `run`
};

class leader {
 public:
  enum class urgency : std::uint8_t { draft, target };
  using queue_id = std::uint64_t;

  leader();
  /// No queue is open any more.
  ~leader();

  queue_id open_queue(urgency kind);
  /// Any thread. At most limits::kMaxQueuedLaunches wait.
  void push(queue_id queue, leader_item item);
  /// Any thread but the leader's: waits for the running item and drops the others.
  void close_queue(queue_id queue);

 private:
  struct state;
  std::shared_ptr<state> state_;  // shared with the listeners of tickets, which may fire late
  std::thread thread_;
};

}  // namespace tandem::gpu::host

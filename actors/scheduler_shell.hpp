#pragma once
/// The actor around the one decider (core/scheduling/scheduler.hpp): hands it messages and the time, sends what it
/// says, publishes its counts. It decides nothing itself.

#include <memory>

#include "actors/live_counters.hpp"
#include "actors/protocol.hpp"
#include "core/scheduling/scheduler.hpp"

namespace tandem {

struct scheduler_shell_options {
  scheduler_options scheduling;
  speculation_settings speculation;
  std::shared_ptr<live_counters> counters;
  bool check_always = false;  ///< all invariants after every message (tests)
};

/// Its first messages must be connect_peers, connect_allocator, connect_streamer and connect_drafter.
scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_shell_options options);

}  // namespace tandem

#pragma once
/// The door: refuses with a reason or admits. Owns admission counters, resolved seeds, the draining state, and the
/// table of live requests from which every one of them can be told its end when another actor fails.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "actors/compile_queue.hpp"
#include "actors/encoder.hpp"
#include "actors/live_counters.hpp"
#include "actors/metrics_registry.hpp"
#include "actors/protocol.hpp"
#include "actors/request_rules.hpp"

namespace tandem {

struct intake_options {
  request_bounds bounds;
  std::size_t max_live_requests = 0;  ///< running and queued together
  std::size_t max_live_tokens = 0;    ///< prompt tokens of all live requests together
  std::uint64_t seed = 0;             ///< from which seeds of requests without one are drawn
  std::shared_ptr<encoder> prompts;
  std::shared_ptr<compile_queue> grammars;  ///< null: no structured output
  std::shared_ptr<metrics_registry> metrics;
  std::shared_ptr<live_counters> counters;
  scheduler_actor scheduler;
};

/// Its first message must be connect_streamer.
intake_actor spawn_intake(caf::actor_system& system, intake_options options);

}  // namespace tandem

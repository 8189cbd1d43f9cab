#include "actors/metrics.hpp"

#include <utility>

namespace tandem {
namespace {

struct metrics_state {
  metrics_state() {}
  static inline const char* name = "metrics";
  std::shared_ptr<metrics_registry> registry;
};

metrics_actor::behavior_type run(metrics_actor::stateful_pointer<metrics_state> self,
                                 std::shared_ptr<metrics_registry> registry) {
  self->state.registry = std::move(registry);
  return {
      [self](const step_measured& step) { self->state.registry->record(step); },
      [self](const stream_measured& delivered) {
        for (const auto& burst : delivered.bursts) self->state.registry->record(burst);
        for (const auto& sequence : delivered.sequences) self->state.registry->record(sequence);
      },
  };
}

}  // namespace

metrics_actor spawn_metrics(caf::actor_system& system, std::shared_ptr<metrics_registry> registry) {
  return system.spawn(run, std::move(registry));
}

}  // namespace tandem

#pragma once
/// The actor that feeds the metrics registry, so that no other actor pays for histograms inside a step.

#include <memory>

#include "actors/metrics_registry.hpp"
#include "actors/protocol.hpp"

namespace tandem {

metrics_actor spawn_metrics(caf::actor_system& system, std::shared_ptr<metrics_registry> registry);

}  // namespace tandem

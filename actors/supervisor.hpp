#pragma once
/// Watches every actor of an engine. Draft sources, the allocator and the streamer are replaced when they die, and
/// those who talk to them are told; the death of any other ends the engine's work with one clear error per request.

#include <array>
#include <cstdint>
#include <memory>

#include "actors/pipeline.hpp"
#include "actors/protocol.hpp"

namespace tandem {

struct supervised_actors {
  metrics_actor metrics;
  scheduler_actor scheduler;
  kv_allocator_actor allocator;
  verifier_actor verifier;
  std::array<drafter_actor, kDraftMethods> drafters;
  intake_actor intake;
  streamer_actor streamer;
  std::uint32_t pool_gen = 1;
};

supervisor_actor spawn_supervisor(caf::actor_system& system, std::shared_ptr<const pipeline_parts> parts,
                                  supervised_actors actors);

}  // namespace tandem

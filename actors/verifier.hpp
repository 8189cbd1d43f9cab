#pragma once
/// The actor that owns the target's stream: launches and returns; the device's thread answers the scheduler.

#include <memory>

#include "actors/protocol.hpp"
#include "gpu/device.hpp"

namespace tandem {

verifier_actor spawn_verifier(caf::actor_system& system, std::shared_ptr<gpu::device> device,
                              scheduler_actor scheduler);

}  // namespace tandem

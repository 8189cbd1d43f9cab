#pragma once
/// The actor that owns a draft model's stream. The stream fills and seals the tickets; its thread answers the
/// scheduler.

#include <memory>

#include "actors/protocol.hpp"
#include "gpu/device.hpp"

namespace tandem {

/// The device must hold a draft model. The draft KV lives in the device: a respawned drafter goes on where this one
/// was.
drafter_actor spawn_drafter_model(caf::actor_system& system, std::shared_ptr<gpu::device> device,
                                  scheduler_actor scheduler);

}  // namespace tandem

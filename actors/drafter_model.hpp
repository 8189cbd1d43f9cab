#pragma once
/// The actor that owns the stream of a draft model or of draft heads. The stream fills and seals the tickets; its
/// thread answers the scheduler.

#include <memory>

#include "actors/protocol.hpp"
#include "gpu/device.hpp"

namespace tandem {

/// The device must hold what `method` drafts with. The draft KV lives in the device: a respawned drafter goes on where
/// this one was.
drafter_actor spawn_drafter_model(caf::actor_system& system, std::shared_ptr<gpu::device> device, draft_method method,
                                  scheduler_actor scheduler);

}  // namespace tandem

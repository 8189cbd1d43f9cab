#pragma once
/// The actor of a program's own draft source. It never waits for that code: a thread asks it, fills and seals the
/// ticket. While a call is under way the source is not asked again, and steps go on without its drafts.

#include <memory>

#include "actors/call_thread.hpp"
#include "actors/custom_source.hpp"
#include "actors/protocol.hpp"

namespace tandem {

/// `thread` outlives the actor: a replaced actor's last call may still run on it.
drafter_actor spawn_drafter_custom(caf::actor_system& system, custom_source::options options,
                                   std::shared_ptr<call_thread> thread, scheduler_actor scheduler);

}  // namespace tandem

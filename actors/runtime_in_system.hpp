#pragma once
/// For services that are built on actors themselves: the engine inside their own actor system.

#include <caf/actor_system.hpp>
#include <memory>

#include "actors/runtime.hpp"

namespace tandem {

/// As make_runtime(), but the actors live in `system`, which must outlive the runtime and keep its workers running.
/// The destructor ends the engine's actors and returns when the last one has ended.
result<std::unique_ptr<runtime>> make_runtime_in(caf::actor_system& system, runtime_options options,
                                                 runtime_parts parts);

}  // namespace tandem

#pragma once
/// The actor of a draft source that needs no device: fills the ticket by plain call.

#include <memory>

#include "actors/protocol.hpp"
#include "actors/text_source.hpp"

namespace tandem {

drafter_actor spawn_drafter_text(caf::actor_system& system, draft_method method, std::unique_ptr<text_source> source,
                                 scheduler_actor scheduler);

}  // namespace tandem

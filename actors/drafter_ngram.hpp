#pragma once
/// The actor that drafts from the sequence's own text: fills the ticket by plain call, no device involved.

#include <cstdint>

#include "actors/ngram_source.hpp"
#include "actors/protocol.hpp"

namespace tandem {

drafter_actor spawn_drafter_ngram(caf::actor_system& system, ngram_source::options options, scheduler_actor scheduler);

}  // namespace tandem

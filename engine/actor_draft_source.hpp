#pragma once
/// A host's actor as a draft source: the engine's call thread sends it each question and waits for the answer.

#include <caf/all.hpp>
#include <memory>

#include "tandem/actor.hpp"

namespace tandem::engine {

class actor_draft_source final : public DraftSource {
 public:
  /// `system` outlives this.
  actor_draft_source(caf::actor_system& system, DraftSourceActor drafts)
      : system_(system), drafts_(std::move(drafts)) {}

  /// Throws std::runtime_error when the actor answers with an error, has ended, or takes too long.
  std::vector<std::int32_t> propose(const DraftQuestion& question) override;

 private:
  caf::actor_system& system_;
  DraftSourceActor drafts_;
};

}  // namespace tandem::engine

#include "actors/drafter_ngram.hpp"

#include <memory>
#include <utility>

#include "core/ticket.hpp"

namespace tandem {
namespace {

struct drafter_ngram_state {
  drafter_ngram_state() {}
  static inline const char* name = "drafter_ngram";
  std::unique_ptr<ngram_source> source;
  scheduler_actor scheduler;
};

drafter_actor::behavior_type run(drafter_actor::stateful_pointer<drafter_ngram_state> self,
                                 const ngram_source::options& options, const scheduler_actor& scheduler) {
  self->state.source = std::make_unique<ngram_source>(options);
  self->state.scheduler = scheduler;
  return {
      [self](const propose& message) {
        auto outcome = std::make_shared<const draft_outcome>(self->state.source->draft(*message.work));
        self->send<caf::message_priority::high>(self->state.scheduler,
                                                draft_finished{draft_method::ngram, std::move(outcome)});
        // Only now may the target's stream go on: the scheduler hears of the source before it hears of the step.
        if (message.work->drafts) message.work->drafts->seal();
      },
  };
}

}  // namespace

drafter_actor spawn_drafter_ngram(caf::actor_system& system, ngram_source::options options, scheduler_actor scheduler) {
  return system.spawn(run, options, std::move(scheduler));
}

}  // namespace tandem

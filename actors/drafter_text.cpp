#include "actors/drafter_text.hpp"

#include <utility>

namespace tandem {
namespace {

struct drafter_text_state {
  drafter_text_state() {}
  static inline const char* name = "drafter_text";
  draft_method method = draft_method::none;
  std::unique_ptr<text_source> source;
  scheduler_actor scheduler;
};

using self_pointer = drafter_actor::stateful_pointer<drafter_text_state>;

drafter_actor::behavior_type run(self_pointer self, draft_method method,
                                 const std::shared_ptr<std::unique_ptr<text_source>>& source,
                                 const scheduler_actor& scheduler) {
  self->state.method = method;
  self->state.source = std::move(*source);
  self->state.scheduler = scheduler;
  return {
      [self](const propose& message) {
        auto outcome = std::make_shared<const draft_outcome>(self->state.source->draft(*message.work));
        self->send<caf::message_priority::high>(self->state.scheduler,
                                                draft_finished{self->state.method, std::move(outcome)});
        // Only now may the target's stream go on: the scheduler hears of the source before it hears of the step.
        if (message.work->drafts) message.work->drafts->seal();
      },
      [self](const outputs_closed& message) { self->state.source->learn(message); },
  };
}

}  // namespace

drafter_actor spawn_drafter_text(caf::actor_system& system, draft_method method, std::unique_ptr<text_source> source,
                                 scheduler_actor scheduler) {
  return system.spawn(run, method, std::make_shared<std::unique_ptr<text_source>>(std::move(source)),
                      std::move(scheduler));
}

}  // namespace tandem

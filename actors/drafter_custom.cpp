#include "actors/drafter_custom.hpp"

#include <functional>
#include <memory>
#include <utility>

#include "actors/custom_caller.hpp"

namespace tandem {
namespace {

struct drafter_custom_state {
  drafter_custom_state() {}
  static inline const char* name = "drafter_custom";
  std::unique_ptr<custom_caller> source;
  std::function<void(draft_fault)> on_fault;
  scheduler_actor scheduler;
};

using self_pointer = drafter_actor::stateful_pointer<drafter_custom_state>;

/// The scheduler hears of the source before it hears of the step that waited for it.
void finish(const scheduler_actor& scheduler, const draft_work& work, draft_outcome outcome,
            const std::function<void(draft_fault)>& on_fault) {
  caf::anon_send<caf::message_priority::high>(
      scheduler, draft_finished{draft_method::custom, std::make_shared<const draft_outcome>(std::move(outcome))});
  if (!work.drafts || work.drafts->size() == 0) return;
  if (!work.drafts->seal() && work.drafts->current() == ticket::state::expired) on_fault(draft_fault::late);
}

/// Calls of actors that were replaced may fill the thread's queue: then the outcome is empty.
void take(self_pointer self, const propose& message) {
  const auto done = [scheduler = self->state.scheduler, on_fault = self->state.on_fault](const draft_work& work,
                                                                                         draft_outcome outcome) {
    finish(scheduler, work, std::move(outcome), on_fault);
  };
  self->state.source->ask(message.work, done);
}

drafter_actor::behavior_type run(self_pointer self, const custom_source::options& options,
                                 const std::shared_ptr<call_thread>& thread, const scheduler_actor& scheduler) {
  self->state.source = std::make_unique<custom_caller>(options, thread);
  self->state.on_fault = options.on_fault;
  self->state.scheduler = scheduler;
  return {
      [self](const propose& message) { take(self, message); },
      [](const outputs_closed&) {},  // a program sees its answers itself
  };
}

}  // namespace

drafter_actor spawn_drafter_custom(caf::actor_system& system, custom_source::options options,
                                   std::shared_ptr<call_thread> thread, scheduler_actor scheduler) {
  return system.spawn(run, std::move(options), std::move(thread), std::move(scheduler));
}

}  // namespace tandem

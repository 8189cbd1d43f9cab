#include "actors/drafter_custom.hpp"

#include <utility>

namespace tandem {
namespace {

/// Shared with the calls under way; used by the call thread only.
struct asked_source {
  explicit asked_source(custom_source::options options) : on_fault(options.on_fault), source(std::move(options)) {}
  std::function<void(draft_fault)> on_fault;
  custom_source source;
};

struct drafter_custom_state {
  drafter_custom_state() {}
  static inline const char* name = "drafter_custom";
  std::shared_ptr<asked_source> asked;
  std::shared_ptr<call_thread> thread;
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

void take(self_pointer self, const propose& message) {
  auto& state = self->state;
  const bool queued = state.thread->push([work = message.work, asked = state.asked, scheduler = state.scheduler] {
    draft_outcome outcome = asked->source.draft(*work);
    finish(scheduler, *work, std::move(outcome), asked->on_fault);
  });
  // Calls of actors that were replaced fill the queue: nothing is known and nothing drafted.
  if (!queued) finish(state.scheduler, *message.work, {.step = message.work->step}, state.asked->on_fault);
}

drafter_actor::behavior_type run(self_pointer self, const std::shared_ptr<asked_source>& asked,
                                 const std::shared_ptr<call_thread>& thread, const scheduler_actor& scheduler) {
  self->state.asked = asked;
  self->state.thread = thread;
  self->state.scheduler = scheduler;
  return {
      [self](const propose& message) { take(self, message); },
      [](const outputs_closed&) {},  // a program sees its answers itself
  };
}

}  // namespace

drafter_actor spawn_drafter_custom(caf::actor_system& system, custom_source::options options,
                                   std::shared_ptr<call_thread> thread, scheduler_actor scheduler) {
  return system.spawn(run, std::make_shared<asked_source>(std::move(options)), std::move(thread), std::move(scheduler));
}

}  // namespace tandem

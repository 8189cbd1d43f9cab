#include "actors/drafter_model.hpp"

#include <utility>

#include "core/assert.hpp"

namespace tandem {
namespace {

struct drafter_model_state {
  drafter_model_state() {}
  static inline const char* name = "drafter_model";
  std::shared_ptr<gpu::device> device;  // outlives the stream: members die in reverse order
  std::unique_ptr<gpu::draft_stream> stream;
  scheduler_actor scheduler;
};

drafter_actor::behavior_type run(drafter_actor::stateful_pointer<drafter_model_state> self,
                                 const std::shared_ptr<gpu::device>& device, const scheduler_actor& scheduler) {
  self->state.device = device;
  self->state.stream = device->open_draft_stream();
  TANDEM_ASSERT(self->state.stream);
  self->state.scheduler = scheduler;
  return {
      [self](const propose& message) {
        self->state.stream->launch(message.work, [scheduler = self->state.scheduler](draft_outcome outcome) {
          // As urgent as step_finished, or the next step would be planned before its source is free again.
          caf::anon_send<caf::message_priority::high>(
              scheduler,
              draft_finished{draft_method::draft_model, std::make_shared<const draft_outcome>(std::move(outcome))});
        });
      },
      [](const outputs_closed&) {},  // it learns nothing
  };
}

}  // namespace

drafter_actor spawn_drafter_model(caf::actor_system& system, std::shared_ptr<gpu::device> device,
                                  scheduler_actor scheduler) {
  return system.spawn(run, std::move(device), std::move(scheduler));
}

}  // namespace tandem

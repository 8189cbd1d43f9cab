#include "actors/verifier.hpp"

#include <utility>

namespace tandem {
namespace {

struct verifier_state {
  verifier_state() {}
  static inline const char* name = "verifier";
  std::shared_ptr<gpu::device> device;  // outlives the stream: members die in reverse order
  std::unique_ptr<gpu::target_stream> stream;
  scheduler_actor scheduler;
};

verifier_actor::behavior_type run(verifier_actor::stateful_pointer<verifier_state> self,
                                  const std::shared_ptr<gpu::device>& device, const scheduler_actor& scheduler) {
  self->state.device = device;
  self->state.stream = device->open_target_stream();
  self->state.scheduler = scheduler;
  return {
      [self](const run_step& message) {
        self->state.stream->launch(message.work, [scheduler = self->state.scheduler](step_outcome outcome) {
          caf::anon_send<caf::message_priority::high>(
              scheduler, step_finished{std::make_shared<const step_outcome>(std::move(outcome))});
        });
      },
  };
}

}  // namespace

verifier_actor spawn_verifier(caf::actor_system& system, std::shared_ptr<gpu::device> device,
                              scheduler_actor scheduler) {
  return system.spawn(run, std::move(device), std::move(scheduler));
}

}  // namespace tandem

#include "actors/scheduler_shell.hpp"

#include <array>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

struct scheduler_state {
  scheduler_state() {}
  static inline const char* name = "scheduler";

  std::unique_ptr<scheduler> decider;
  std::shared_ptr<live_counters> counters;
  bool check_always = false;
  bool tick_armed = false;
  step_id steps_seen = 0;
  bool was_idle = true;

  verifier_actor verifier;
  kv_allocator_actor allocator;
  streamer_actor streamer;
  intake_actor intake;
  metrics_actor metrics;
  std::array<drafter_actor, kDraftMethods> drafters;
};

using self_pointer = scheduler_actor::stateful_pointer<scheduler_state>;

bool has_work(const scheduler::status& now) {
  return now.running + now.waiting > 0 || now.step_in_flight;
}

void send_step(self_pointer self, scheduler_commands& say) {
  auto& state = self->state;
  TANDEM_ASSERT(say.proposals.size() == say.methods.size());
  for (std::size_t i = 0; i < say.proposals.size(); ++i)
    self->send(state.drafters[static_cast<std::size_t>(say.methods[i])], std::move(say.proposals[i]));
  if (say.step) self->send(state.verifier, std::move(*say.step));
}

void send_blocks(self_pointer self, scheduler_commands& say) {
  const auto& allocator = self->state.allocator;
  // A fresh pool must know what is held before it hands out anything.
  if (say.adopt) self->send(allocator, std::move(*say.adopt));
  if (say.share) self->send(allocator, std::move(*say.share));
  if (say.publish) self->send(allocator, std::move(*say.publish));
  if (say.release) self->send(allocator, std::move(*say.release));
  for (auto& match : say.matches) self->send(allocator, std::move(match));
  if (say.lease) self->send(allocator, *say.lease);
}

void publish_counts(self_pointer self, const scheduler::status& now) {
  auto& state = self->state;
  auto& counters = *state.counters;
  counters.running.store(now.running, std::memory_order_relaxed);
  counters.waiting.store(now.waiting, std::memory_order_relaxed);
  counters.blocks_used.store(now.blocks_used, std::memory_order_relaxed);
  const bool idle = !has_work(now);
  if (now.steps != state.steps_seen || state.was_idle || idle)
    counters.last_progress_ns.store(self->clock().now().time_since_epoch().count(), std::memory_order_relaxed);
  state.steps_seen = now.steps;
  state.was_idle = idle;
  counters.steps.store(now.steps, std::memory_order_release);
}

/// What the next step waits for goes first; the rest runs beside the device.
void deliver(self_pointer self, scheduler_commands say) {
  auto& state = self->state;
  send_step(self, say);
  const auto now = state.decider->current();
  // Before the tokens themselves, so that a client that has an answer finds it counted.
  publish_counts(self, now);
  if (say.measured) self->send(state.metrics, std::move(*say.measured));
  if (say.committed) self->send(state.streamer, std::move(*say.committed));
  if (say.outputs) self->send(state.drafters[static_cast<std::size_t>(draft_method::suffix)], std::move(*say.outputs));
  send_blocks(self, say);
  for (auto& retired : say.retired) self->send(state.intake, retired);

  if (state.check_always) state.decider->check();
  if (state.tick_armed || !has_work(now)) return;
  state.tick_armed = true;
  self->delayed_send(self, limits::kTick, tick{});
}

/// A handler that passes one kind of message on to the decider.
template <class Message>
auto decide(self_pointer self) {
  return [self](const Message& message) { deliver(self, self->state.decider->on(message, self->clock().now())); };
}

void take_options(scheduler_state& state, scheduler_shell_options& options) {
  auto policy = make_policy(options.speculation);
  state.decider = std::make_unique<scheduler>(std::move(options.scheduling), std::move(policy));
  state.counters = std::move(options.counters);
  state.check_always = options.check_always;
}

void take_peers(scheduler_state& state, const connect_peers& peers) {
  state.verifier = peers.verifier;
  state.intake = peers.intake;
  state.metrics = peers.metrics;
}

void take_allocator(self_pointer self, const connect_allocator& message) {
  self->state.allocator = message.allocator;
  if (!message.restarted) return;
  deliver(self, self->state.decider->on(allocator_restarted{message.pool_gen}, self->clock().now()));
}

scheduler_actor::behavior_type run(self_pointer self, const std::shared_ptr<scheduler_shell_options>& options) {
  take_options(self->state, *options);
  return {
      decide<step_finished>(self),
      decide<draft_finished>(self),
      decide<prefix_matched>(self),
      decide<blocks_leased>(self),
      decide<admit_sequence>(self),
      decide<cancel_generation>(self),
      [self](const tick&) {
        self->state.tick_armed = false;
        deliver(self, self->state.decider->on_tick(self->clock().now()));
      },
      decide<drafter_changed>(self),
      [self](const connect_drafter& message) {
        self->state.drafters[static_cast<std::size_t>(message.method)] = message.drafter;
      },
      [self](const connect_allocator& message) { take_allocator(self, message); },
      [self](const connect_streamer& message) { self->state.streamer = message.streamer; },
      [self](const connect_peers& message) { take_peers(self->state, message); },
  };
}

}  // namespace

scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_shell_options options) {
  return system.spawn(run, std::make_shared<scheduler_shell_options>(std::move(options)));
}

}  // namespace tandem

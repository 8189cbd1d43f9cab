#include "actors/supervisor.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "config/limits.hpp"

namespace tandem {
namespace {

struct supervisor_state {
  supervisor_state() {}
  static inline const char* name = "supervisor";
  std::shared_ptr<const pipeline_parts> parts;
  supervised_actors actors;
  int restarts = 0;
};

using self_pointer = supervisor_actor::stateful_pointer<supervisor_state>;

template <class Handle>
bool is(const caf::down_msg& message, const Handle& handle) {
  return handle && message.source == handle.address();
}

void monitor_all(self_pointer self) {
  const auto& actors = self->state.actors;
  self->monitor(actors.metrics);
  self->monitor(actors.scheduler);
  self->monitor(actors.allocator);
  self->monitor(actors.verifier);
  self->monitor(actors.intake);
  self->monitor(actors.streamer);
  for (const auto& drafter : actors.drafters) {
    if (drafter) self->monitor(drafter);
  }
}

void give_up(self_pointer self, const char* who) {
  const auto& actors = self->state.actors;
  const auto why = fmt::format("The engine stopped by an internal fault ({}); restart the server.", who);
  self->state.parts->counters->failed.store(true);
  if (actors.intake)
    self->send(actors.intake, fail_everything{why});
  else
    self->send(actors.streamer, fail_streams{why});
}

/// The scheduler hears of the new streamer before intake does: what intake then admits is streamed by the new one.
void replace_streamer(self_pointer self) {
  auto& state = self->state;
  state.actors.streamer = spawn_streamer_of(self->system(), *state.parts, state.actors.intake, state.actors.metrics);
  self->monitor(state.actors.streamer);
  self->send(state.actors.scheduler, connect_streamer{state.actors.streamer});
  self->send(state.actors.intake, connect_streamer{state.actors.streamer});
}

void replace_allocator(self_pointer self) {
  auto& state = self->state;
  const std::uint32_t pool_gen = ++state.actors.pool_gen;
  state.actors.allocator = spawn_allocator_of(self->system(), *state.parts, pool_gen, state.actors.scheduler);
  self->monitor(state.actors.allocator);
  self->send(state.actors.scheduler, connect_allocator{state.actors.allocator, pool_gen, true});
}

/// A dead drafter's stream is gone before its down message: the device works on nothing of it any more.
void replace_drafter(self_pointer self, draft_method method) {
  auto& state = self->state;
  auto& drafter = state.actors.drafters[static_cast<std::size_t>(method)];
  self->send(state.actors.scheduler, drafter_changed{method, false});
  if (state.restarts > limits::kMaxActorRestarts) return;  // drafts are optional: go on without
  drafter = spawn_drafter_of(self->system(), *state.parts, method, state.actors.scheduler);
  self->monitor(drafter);
  self->send(state.actors.scheduler, connect_drafter{method, drafter});
  self->send(state.actors.scheduler, drafter_changed{method, true});
}

void take_down(self_pointer self, const caf::down_msg& message) {
  auto& state = self->state;
  const auto& actors = state.actors;
  const auto count = [&](const char* who) {
    ++state.restarts;
    state.parts->metrics->count_restart(who);
  };
  for (std::size_t i = 0; i < actors.drafters.size(); ++i) {
    if (!is(message, actors.drafters[i])) continue;
    count("drafter");
    return replace_drafter(self, static_cast<draft_method>(i));
  }
  const bool spent = state.restarts >= limits::kMaxActorRestarts;
  if (is(message, actors.streamer)) {
    count("streamer");
    replace_streamer(self);  // also when it is the last time: only a streamer's death can tell the clients it had
    if (spent) give_up(self, "too many restarts");
    return;
  }
  if (is(message, actors.allocator) && !spent) {
    count("kv_allocator");
    return replace_allocator(self);
  }
  if (is(message, actors.scheduler)) return give_up(self, "scheduler");
  if (is(message, actors.verifier)) return give_up(self, "verifier");
  if (is(message, actors.metrics)) return give_up(self, "metrics");
  if (is(message, actors.intake)) {
    state.actors.intake = nullptr;
    return give_up(self, "intake");
  }
  give_up(self, "too many restarts");
}

template <class Handle>
void kill(self_pointer self, const Handle& handle) {
  if (handle) self->send_exit(handle, caf::exit_reason::kill);
}

void kill_named(self_pointer self, const std::string& name) {
  const auto& actors = self->state.actors;
  if (name == "drafter") {
    for (const auto& drafter : actors.drafters) kill(self, drafter);
  }
  if (name == "kv_allocator") kill(self, actors.allocator);
  if (name == "streamer") kill(self, actors.streamer);
  if (name == "scheduler") kill(self, actors.scheduler);
  if (name == "verifier") kill(self, actors.verifier);
  if (name == "intake") kill(self, actors.intake);
}

/// Reverse order of spawning. Intake and streamer end themselves, after they have told every client that still waits.
void stop(self_pointer self) {
  const auto& actors = self->state.actors;
  constexpr auto reason = caf::exit_reason::user_shutdown;
  if (actors.intake)
    self->send(actors.intake, fail_everything{"The server shut down before this request ended.", true});
  else
    self->send_exit(actors.streamer, reason);
  for (const auto& drafter : actors.drafters) {
    if (drafter) self->send_exit(drafter, reason);
  }
  self->send_exit(actors.verifier, reason);
  self->send_exit(actors.allocator, reason);
  self->send_exit(actors.scheduler, reason);
  self->send_exit(actors.metrics, reason);
  self->quit();
}

supervisor_actor::behavior_type run(self_pointer self, const std::shared_ptr<const pipeline_parts>& parts,
                                    const supervised_actors& actors) {
  self->state.parts = parts;
  self->state.actors = actors;
  monitor_all(self);
  self->set_down_handler([self](const caf::down_msg& message) { take_down(self, message); });
  return {
      [self](const kill_actor& message) { kill_named(self, message.name); },
      [self](const stop_everything&) { stop(self); },
  };
}

}  // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, std::shared_ptr<const pipeline_parts> parts,
                                  supervised_actors actors) {
  return system.spawn(run, std::move(parts), std::move(actors));
}

}  // namespace tandem

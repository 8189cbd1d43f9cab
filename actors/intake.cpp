#include "actors/intake.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "actors/admission_desk.hpp"
#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

struct intake_state {
  intake_state() {}
  static inline const char* name = "intake";
  std::unique_ptr<admission_desk> desk;
  std::shared_ptr<encoder> prompts;
  std::shared_ptr<compile_queue> grammars;
  std::shared_ptr<metrics_registry> metrics;
  std::shared_ptr<live_counters> counters;
  scheduler_actor scheduler;
  streamer_actor streamer;
  std::optional<error> closed;  ///< why nothing more is taken
  bool tick_armed = false;
};

using self_pointer = intake_actor::stateful_pointer<intake_state>;

const char* reason_of(const error& why) {
  switch (why.code) {
    case error_code::overloaded:
      return "queue_full";
    case error_code::unavailable:
      return "unavailable";
    case error_code::too_large:
      return "too_large";
    case error_code::cancelled:
      return "cancelled";
    case error_code::deadline:
      return "timeout";
    case error_code::device_failed:
      return "internal";
    default:
      return "invalid";
  }
}

void answer_refusal(intake_state& state, request_id id, outlet& client, error why) {
  if (why.code == error_code::cancelled)
    state.metrics->count_cancelled();
  else
    state.metrics->count_rejected(reason_of(why));
  client.answer({id, std::move(why), nullptr});
}

/// Of a request that is still pending: it keeps no place anywhere.
void refuse_pending(intake_state& state, request_id id, error why) {
  state.prompts->withdraw(id);
  if (state.grammars) state.grammars->withdraw(id);
  const auto client = state.desk->refuse(id);
  answer_refusal(state, id, *client, std::move(why));
}

/// A request that never got as far as the desk was counted live by the runtime all the same.
void turn_away(intake_state& state, const submit_generation& message, error why) {
  answer_refusal(state, message.id, *message.client, std::move(why));
  state.counters->live_requests.fetch_sub(1);
}

/// On the encoder's thread, behind the prompt.
prompt_encoded with_bad_words(const encoder& words, const submit_generation& message,
                              result<std::vector<token_id>> tokens) {
  prompt_encoded encoded{message.id, std::move(tokens), {}};
  if (!encoded.tokens || message.request->bad_words.empty()) return encoded;
  auto bad_words = words.encode_bad_words(message.request->bad_words);
  if (bad_words)
    encoded.bad_words = std::move(*bad_words);
  else
    encoded.tokens = tl::unexpected(std::move(bad_words.error()));
  return encoded;
}

/// Looks for missed deadlines while a pending request has one.
void arm_tick(self_pointer self) {
  auto& state = self->state;
  if (state.tick_armed || !state.desk->has_deadlines()) return;
  state.tick_armed = true;
  self->delayed_send(self, limits::kTick, tick{});
}

void submit(self_pointer self, const submit_generation& message) {
  auto& state = self->state;
  if (state.closed) return turn_away(state, message, *state.closed);
  if (auto opened = state.desk->open(message); !opened) return turn_away(state, message, std::move(opened.error()));
  // The request owns the prompt; the pointer shares that ownership.
  std::shared_ptr<const prompt_source> prompt(message.request, &message.request->prompt);
  intake_actor me = self;
  // The encoder itself makes the call, so it is there.
  const auto answer = [me, message, words = state.prompts.get()](result<std::vector<token_id>> tokens) {
    caf::anon_send(me, with_bad_words(*words, message, std::move(tokens)));
  };
  auto queued = state.prompts->push(std::move(prompt), answer, message.id);
  if (!queued) return refuse_pending(state, message.id, std::move(queued.error()));
  arm_tick(self);
}

void start(self_pointer self, request_id id, std::shared_ptr<const grammar> structure) {
  auto& state = self->state;
  auto admission = state.desk->admit(id, std::move(structure));
  state.desk->client(id)->answer({id, std::nullopt, admission.sequences.front().prompt});
  for (auto& stream : admission.streams) self->send(state.streamer, std::move(stream));
  for (auto& sequence : admission.sequences) self->send(state.scheduler, std::move(sequence));
}

/// The prompt is there; its grammar is next.
void take_prompt(self_pointer self, const prompt_encoded& message) {
  auto& state = self->state;
  const request_id id = message.id;
  if (!state.desk->pending(id)) return;  // ended meanwhile
  if (!message.tokens) return refuse_pending(state, id, message.tokens.error());
  const auto client = state.desk->client(id);
  auto taken = state.desk->take_prompt(id, *message.tokens, message.bad_words);
  if (!taken) return answer_refusal(state, id, *client, std::move(taken.error()));
  const auto& spec = state.desk->wanted(id).structured;
  if (!spec) return start(self, id, nullptr);
  intake_actor me = self;
  state.grammars->push(id, *spec, [me, id](compiled_grammar compiled) {
    caf::anon_send(me, grammar_compiled{id, std::move(compiled)});
  });
}

void take_grammar(self_pointer self, const grammar_compiled& message) {
  auto& state = self->state;
  if (!state.desk->pending(message.id)) return;  // ended meanwhile
  if (!message.structure) return refuse_pending(state, message.id, message.structure.error());
  start(self, message.id, *message.structure);
}

void refuse_late(self_pointer self) {
  auto& state = self->state;
  state.tick_armed = false;
  for (const request_id id : state.desk->late(self->clock().now()))
    refuse_pending(state, id, {error_code::deadline, "The deadline passed before the request could start.", {}});
  arm_tick(self);
}

void cancel(self_pointer self, request_id id) {
  auto& state = self->state;
  if (!state.desk->live(id)) return;
  if (state.desk->pending(id))
    return refuse_pending(state, id, {error_code::cancelled, "The request was cancelled before it started.", {}});
  self->send(state.scheduler, cancel_generation{id});
}

/// Ends a request whose streamer died: tells its client what the streamer cannot tell any more.
void break_off(self_pointer self, request_id id, const error& why) {
  auto& state = self->state;
  const auto client = state.desk->client(id);
  std::vector<generation_event> events;
  for (const auto& choice : state.desk->unended(id)) {
    generation_event last;
    last.id = id;
    last.choice = choice.choice;
    last.end = finish{.reason = finish_reason::error, .message = why.message};
    events.push_back(std::move(last));
  }
  if (events.empty()) return;
  self->send(state.scheduler, cancel_generation{id});
  for (const auto& event : events) state.desk->end({id, event.choice});
  client->post(std::move(events));
}

void reconnect(self_pointer self, const connect_streamer& message) {
  auto& state = self->state;
  const bool replaced = static_cast<bool>(state.streamer);
  state.streamer = message.streamer;
  if (!replaced) return;
  const error why{error_code::device_failed,
                  "The text stream of this request was lost by an internal fault; send the request again.",
                  {}};
  for (request_id id : state.desk->live_requests()) {
    if (!state.desk->pending(id)) break_off(self, id, why);
  }
}

void fail_all(self_pointer self, const fail_everything& message) {
  auto& state = self->state;
  state.closed = error{error_code::unavailable, message.message, {}};
  for (request_id id : state.desk->live_requests()) {
    if (state.desk->pending(id))
      refuse_pending(state, id, *state.closed);
    else
      self->send(state.scheduler, cancel_generation{id});
  }
  self->send(state.streamer, fail_streams{message.message, message.quit});
  if (message.quit) self->quit();
}

void take_options(intake_state& state, intake_options& options) {
  state.desk = std::make_unique<admission_desk>(admission_desk::options{
      std::move(options.bounds), options.max_live_requests, options.max_live_tokens, options.seed});
  state.prompts = std::move(options.prompts);
  state.grammars = std::move(options.grammars);
  state.metrics = std::move(options.metrics);
  state.counters = std::move(options.counters);
  state.scheduler = std::move(options.scheduler);
  state.desk->on_forgotten = [counters = state.counters](std::size_t count) {
    counters->live_requests.fetch_sub(static_cast<std::int64_t>(count));
  };
}

intake_actor::behavior_type run(self_pointer self, const std::shared_ptr<intake_options>& options) {
  take_options(self->state, *options);
  return {
      [self](const submit_generation& message) { submit(self, message); },
      [self](const prompt_encoded& message) { take_prompt(self, message); },
      [self](const grammar_compiled& message) { take_grammar(self, message); },
      [self](const request_retired& message) { self->state.desk->retire(message.id); },
      [self](const streams_ended& message) {
        for (const auto& id : message.ids) self->state.desk->end(id);
      },
      [self](const cancel_generation& message) { cancel(self, message.id); },
      [self](const begin_drain&) {
        self->state.closed =
            error{error_code::unavailable, "The server is shutting down and takes no new requests.", {}};
      },
      [self](const tick&) { refuse_late(self); },
      [self](const cancel_everything&) {
        for (request_id id : self->state.desk->live_requests()) cancel(self, id);
      },
      [self](const connect_streamer& message) { reconnect(self, message); },
      [self](const fail_everything& message) { fail_all(self, message); },
  };
}

}  // namespace

intake_actor spawn_intake(caf::actor_system& system, intake_options options) {
  return system.spawn(run, std::make_shared<intake_options>(std::move(options)));
}

}  // namespace tandem

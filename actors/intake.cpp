#include "actors/intake.hpp"

#include <utility>
#include <vector>

#include "actors/admission_desk.hpp"
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

void refuse_encoding(intake_state& state, request_id id, error why) {
  const auto client = state.desk->refuse(id);
  answer_refusal(state, id, *client, std::move(why));
}

/// A request that never got as far as the desk was counted live by the runtime all the same.
void turn_away(intake_state& state, const submit_generation& message, error why) {
  answer_refusal(state, message.id, *message.client, std::move(why));
  state.counters->live_requests.fetch_sub(1);
}

/// On a thread of the encoder: the prompt is done, its grammar is next.
void compile_too(const intake_actor& me, const submit_generation& message, compile_queue& grammars,
                 result<std::vector<token_id>> tokens) {
  grammars.push(*message.request->structured,
                [me, id = message.id, tokens = std::move(tokens)](compiled_grammar compiled) mutable {
                  if (!compiled) tokens = tl::unexpected(std::move(compiled.error()));
                  caf::anon_send(me, prompt_encoded{id, std::move(tokens), compiled ? *compiled : nullptr});
                });
}

void submit(self_pointer self, const submit_generation& message) {
  auto& state = self->state;
  if (state.closed) return turn_away(state, message, *state.closed);
  if (auto opened = state.desk->open(message); !opened) return turn_away(state, message, std::move(opened.error()));
  // The request owns the prompt; the pointer shares that ownership.
  std::shared_ptr<const prompt_source> prompt(message.request, &message.request->prompt);
  intake_actor me = self;
  const auto answer = [me, message, grammars = state.grammars](result<std::vector<token_id>> tokens) {
    if (tokens && message.request->structured) return compile_too(me, message, *grammars, std::move(tokens));
    caf::anon_send(me, prompt_encoded{message.id, std::move(tokens), nullptr});
  };
  auto queued = state.prompts->push(std::move(prompt), answer);
  if (!queued) refuse_encoding(state, message.id, std::move(queued.error()));
}

void admit(self_pointer self, const prompt_encoded& message) {
  auto& state = self->state;
  if (!state.desk->encoding(message.id)) return;  // cancelled meanwhile
  if (!message.tokens) return refuse_encoding(state, message.id, message.tokens.error());
  const auto client = state.desk->client(message.id);
  auto admission = state.desk->admit(message.id, *message.tokens, message.structure);
  if (!admission) return answer_refusal(state, message.id, *client, std::move(admission.error()));
  client->answer({message.id, std::nullopt, admission->sequences.front().prompt});
  for (auto& stream : admission->streams) self->send(state.streamer, std::move(stream));
  for (auto& sequence : admission->sequences) self->send(state.scheduler, std::move(sequence));
}

void cancel(self_pointer self, request_id id) {
  auto& state = self->state;
  if (!state.desk->live(id)) return;
  if (state.desk->encoding(id))
    return refuse_encoding(state, id, {error_code::cancelled, "The request was cancelled before it started.", {}});
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
    if (!state.desk->encoding(id)) break_off(self, id, why);
  }
}

void fail_all(self_pointer self, const fail_everything& message) {
  auto& state = self->state;
  state.closed = error{error_code::unavailable, message.message, {}};
  for (request_id id : state.desk->live_requests()) {
    if (state.desk->encoding(id))
      refuse_encoding(state, id, *state.closed);
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
      [self](const prompt_encoded& message) { admit(self, message); },
      [self](const request_retired& message) { self->state.desk->retire(message.id); },
      [self](const streams_ended& message) {
        for (const auto& id : message.ids) self->state.desk->end(id);
      },
      [self](const cancel_generation& message) { cancel(self, message.id); },
      [self](const begin_drain&) {
        self->state.closed =
            error{error_code::unavailable, "The server is shutting down and takes no new requests.", {}};
      },
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

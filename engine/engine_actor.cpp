/// include/tandem/actor.hpp over the runtime.

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "actors/runtime_in_system.hpp"
#include "engine/actor_draft_source.hpp"
#include "engine/client.hpp"
#include "engine/loader.hpp"
#include "engine/public_types.hpp"
#include "engine/user_drafts.hpp"
#include "tandem/actor.hpp"

namespace tandem::engine {
namespace {

/// The delivery thread's words to the engine's actor. They never leave the process.
struct answer_refused {
  std::uint64_t id = 0;
  tandem::error problem;
};
struct piece_arrived {
  std::uint64_t id = 0;
  generation_event event;
};

}  // namespace
}  // namespace tandem::engine

using tandem_refused_ptr = std::shared_ptr<const tandem::engine::answer_refused>;
using tandem_piece_ptr = std::shared_ptr<const tandem::engine::piece_arrived>;
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem_refused_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem_piece_ptr)

namespace tandem::engine {
namespace {

/// The public interface and what only the delivery thread says.
using inner_actor = EngineActor::extend<caf::reacts_to<tandem_piece_ptr>, caf::reacts_to<tandem_refused_ptr>>;

caf::error to_caf_error(const tandem::error& problem) {
  return caf::make_error(caf::sec::runtime_error, code_name(problem.code), problem.message);
}

/// A request in flight: it wants one Output, or its events.
struct pending_request {
  std::int32_t choices_left = 1;
  collected_answer answer;
  caf::typed_response_promise<Output> output;  // not with a listener
  caf::actor listener;
};

/// What ends on a thread of its own: the runtime's destructor waits for actors that may need the very worker on which
/// the engine's actor ends.
struct closing_parts {
  std::unique_ptr<runtime> engine;
  std::unique_ptr<client> requests;
};

struct engine_actor_state {
  caf::actor_system* system = nullptr;
  std::unique_ptr<runtime> engine;
  std::unique_ptr<client> requests;
  std::unordered_map<std::uint64_t, pending_request> pending;

  engine_actor_state() = default;
  ~engine_actor_state() {
    if (!engine) return;
    const auto parts = std::make_shared<closing_parts>(closing_parts{std::move(engine), std::move(requests)});
    system->spawn<caf::detached>([parts](caf::event_based_actor*) {
      parts->engine.reset();
      parts->requests.reset();
    });
  }
};

using self_pointer = inner_actor::stateful_pointer<engine_actor_state>;

request_handlers handlers_for(const inner_actor& self) {
  request_handlers handlers;
  handlers.answer = [self](const submission_answer& answer) {
    if (!answer.refused) return;
    caf::anon_send(self, std::make_shared<const answer_refused>(answer_refused{answer.id.value, *answer.refused}));
  };
  handlers.event = [self](generation_event event) {
    const std::uint64_t request = event.id.value;
    caf::anon_send(self, std::make_shared<const piece_arrived>(piece_arrived{request, std::move(event)}));
  };
  return handlers;
}

/// The new entry of `pending`, or why the request was not even submitted. What the delivery thread says about it comes
/// as a message, so never before this returned.
result<std::uint64_t> submit(self_pointer self, const Request& request) {
  auto wanted = to_generation_request(request);
  if (!wanted) return tl::unexpected(wanted.error());
  const std::int32_t choices = wanted->n;
  const request_id id =
      self->state.requests->submit(std::move(*wanted), handlers_for(caf::actor_cast<inner_actor>(self)));
  self->state.pending.emplace(id.value, pending_request{choices, collected_answer(choices), {}, {}});
  return id.value;
}

void finish(self_pointer self, std::uint64_t id, pending_request& request) {
  if (request.output.pending()) {
    const auto failed =
        std::find_if(request.answer.choices.begin(), request.answer.choices.end(),
                     [](const auto& choice) { return choice.end && choice.end->reason == finish_reason::error; });
    if (failed == request.answer.choices.end())
      request.output.deliver(to_output(request.answer));
    else
      request.output.deliver(to_caf_error({failed->end->code, failed->end->message, {}}));
  }
  self->state.pending.erase(id);
}

void take_piece(self_pointer self, const tandem_piece_ptr& piece) {
  const auto found = self->state.pending.find(piece->id);
  if (found == self->state.pending.end()) return;
  pending_request& request = found->second;
  const bool ended = piece->event.end.has_value();
  if (request.listener)
    caf::anon_send(request.listener, piece->id, to_event(piece->event));
  else
    request.answer.add(piece->event);
  if (ended && --request.choices_left == 0) finish(self, piece->id, request);
}

void take_refusal(self_pointer self, const tandem_refused_ptr& refusal) {
  const auto found = self->state.pending.find(refusal->id);
  if (found == self->state.pending.end()) return;
  pending_request& request = found->second;
  if (request.listener) {
    Event event;
    event.finish_reason = "error";
    event.error = refusal->problem.message;
    caf::anon_send(request.listener, refusal->id, std::move(event));
  } else {
    request.output.deliver(to_caf_error(refusal->problem));
  }
  self->state.pending.erase(found);
}

/// Requests still open get an error.
void close(self_pointer self, const caf::error& reason) {
  for (auto& [id, request] : self->state.pending)
    if (request.output.pending())
      request.output.deliver(to_caf_error({error_code::cancelled, "the engine was stopped.", {}}));
  self->state.pending.clear();
  self->quit(reason);
}

caf::result<Output> generate(self_pointer self, const Request& request) {
  const auto id = submit(self, request);
  if (!id) return to_caf_error(id.error());
  auto promise = self->make_response_promise<Output>();
  self->state.pending.at(*id).output = promise;
  return promise;
}

caf::result<std::uint64_t> stream(self_pointer self, const Request& request, const caf::actor& listener) {
  const auto id = submit(self, request);
  if (!id) return to_caf_error(id.error());
  self->state.pending.at(*id).listener = listener;
  return *id;
}

caf::result<std::vector<std::int32_t>> tokenize(self_pointer self, const std::string& text) {
  const auto ids = self->state.engine->tokenizer().encode(text, false, false);
  if (!ids) return to_caf_error(ids.error());
  return *ids;
}

inner_actor::behavior_type engine_behavior(self_pointer self, const std::shared_ptr<std::unique_ptr<runtime>>& engine) {
  self->state.system = &self->system();
  self->state.engine = std::move(*engine);
  self->state.requests = std::make_unique<client>(*self->state.engine);
  self->set_exit_handler([self](const caf::exit_msg& message) { close(self, message.reason); });
  return {
      [self](const Request& request) { return generate(self, request); },
      [self](stream_atom, const Request& request, const caf::actor& to) { return stream(self, request, to); },
      [self](cancel_atom, std::uint64_t id) { self->state.requests->cancel(request_id{id}); },
      [self](tokenize_atom, const std::string& text) { return tokenize(self, text); },
      [self](metrics_atom) { return self->state.engine->metrics_text(); },
      [self](const tandem_piece_ptr& piece) { take_piece(self, piece); },
      [self](const tandem_refused_ptr& refusal) { take_refusal(self, refusal); },
  };
}

}  // namespace
}  // namespace tandem::engine

namespace tandem {

EngineActor spawn_engine(caf::actor_system& system, const Options& options) {
  const auto raise = [](const error& problem) { throw Error(engine::code_name(problem.code), problem.message); };
  const auto settings = engine::to_engine_options(options);
  if (!settings) raise(settings.error());
  auto loaded = engine::load_parts(*settings, options.log, engine::user_drafts::of(options.draft_source));
  if (!loaded) raise(loaded.error());
  auto running = make_runtime_in(system, std::move(loaded->options), std::move(loaded->parts));
  if (!running) raise(running.error());
  const auto handed_over = std::make_shared<std::unique_ptr<runtime>>(std::move(*running));
  return system.spawn(engine::engine_behavior, handed_over);
}

EngineActor spawn_engine(caf::actor_system& system, const Options& options, DraftSourceActor drafts) {
  Options with_drafts = options;
  with_drafts.draft_source = std::make_shared<engine::actor_draft_source>(system, std::move(drafts));
  return spawn_engine(system, with_drafts);
}

void add_message_types(caf::actor_system_config& config) {
  config.add_message_type<SamplingParams>("tandem::SamplingParams");
  config.add_message_type<Message>("tandem::Message");
  config.add_message_type<Request>("tandem::Request");
  config.add_message_type<DraftRequest>("tandem::DraftRequest");
  config.add_message_type<Logprob>("tandem::Logprob");
  config.add_message_type<Usage>("tandem::Usage");
  config.add_message_type<Choice>("tandem::Choice");
  config.add_message_type<Event>("tandem::Event");
  config.add_message_type<Output>("tandem::Output");
}

}  // namespace tandem

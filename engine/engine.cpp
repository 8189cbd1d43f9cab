/// include/tandem/engine.hpp over the runtime.

#include "tandem/engine.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

#include "engine/client.hpp"
#include "engine/collected_answer.hpp"
#include "engine/loader.hpp"
#include "engine/public_types.hpp"
#include "engine/user_drafts.hpp"

namespace tandem {
namespace detail {

/// What handles hold: they may outlive the engine, and must never keep it alive on a callback's thread.
struct cancel_gate {
  std::mutex mutex;
  engine::client* client = nullptr;  // null once the engine goes
};

struct engine_state {
  std::unique_ptr<runtime> engine;
  std::unique_ptr<engine::client> client;
  std::shared_ptr<cancel_gate> gate = std::make_shared<cancel_gate>();
};

/// One streamed request, between the delivery thread and the reader. Pieces that wait are bounded by max_tokens.
struct request_state {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Event> events;
  std::optional<tandem::error> refused;
  std::int32_t choices_left = 1;
};

}  // namespace detail

namespace {

[[noreturn]] void raise(const error& problem) {
  throw Error(engine::code_name(problem.code), problem.message);
}

template <class T>
T value_or_raise(result<T> outcome) {
  if (!outcome) raise(outcome.error());
  return std::move(*outcome);
}

/// An answer that fulfils a promise when it is complete. Delivery thread only.
struct promised_answer {
  engine::collected_answer answer;
  std::promise<Output> promise;

  explicit promised_answer(std::int32_t choices) : answer(choices) {}

  void settle() {
    if (!answer.complete()) return;
    if (answer.refused) {
      fail_with(*answer.refused);
      return;
    }
    for (const engine::collected_choice& choice : answer.choices) {
      if (choice.end->reason != finish_reason::error) continue;
      fail_with({choice.end->code, choice.end->message, {}});
      return;
    }
    promise.set_value(engine::to_output(answer));
  }
  void fail_with(const error& problem) {
    promise.set_exception(std::make_exception_ptr(Error(engine::code_name(problem.code), problem.message)));
  }
};

Event refusal_event(const error& refused) {
  Event event;
  event.finish_reason = "error";
  event.error = refused.message;
  return event;
}

engine::request_handlers stream_handlers(const std::shared_ptr<detail::request_state>& state) {
  engine::request_handlers handlers;
  handlers.answer = [state](const submission_answer& answer) {
    if (!answer.refused) return;
    const std::lock_guard lock(state->mutex);
    state->refused = answer.refused;
    state->changed.notify_all();
  };
  handlers.event = [state](generation_event event) {
    const std::lock_guard lock(state->mutex);
    state->events.push_back(engine::to_event(std::move(event)));
    state->changed.notify_all();
  };
  return handlers;
}

}  // namespace

void Handle::cancel() const {
  const auto gate = gate_.lock();
  if (!gate) return;
  const std::lock_guard lock(gate->mutex);
  if (gate->client != nullptr) gate->client->cancel(request_id{id_});
}

Stream::Stream(Stream&&) noexcept = default;

Stream::~Stream() {
  if (!state_) return;
  const std::unique_lock lock(state_->mutex);
  if (state_->choices_left > 0 && !state_->refused) handle_.cancel();
}

bool Stream::advance() {
  std::unique_lock lock(state_->mutex);
  if (state_->choices_left == 0) return false;
  state_->changed.wait(lock, [this] { return state_->refused || !state_->events.empty(); });
  if (state_->refused) raise(*state_->refused);
  current_ = std::move(state_->events.front());
  state_->events.pop_front();
  if (!current_.finish_reason.empty()) --state_->choices_left;
  return true;
}

Engine::Engine(const Options& options) : state_(std::make_shared<detail::engine_state>()) {
  const config::engine_options settings = value_or_raise(engine::to_engine_options(options));
  state_->engine =
      value_or_raise(engine::start_engine(settings, options.log, engine::user_drafts::of(options.draft_source)));
  state_->client = std::make_unique<engine::client>(*state_->engine);
  state_->gate->client = state_->client.get();
}

Engine::~Engine() {
  {
    const std::lock_guard lock(state_->gate->mutex);
    state_->gate->client = nullptr;
  }
  // Every future and callback hears its end before the delivery thread stops.
  state_->engine->drain(std::chrono::milliseconds{0});
  state_->engine.reset();
  state_->client->flush();
}

std::vector<Output> Engine::generate(const std::vector<std::string>& prompts, const SamplingParams& sampling) {
  std::vector<std::future<Output>> pending;
  std::vector<Output> outputs;
  for (const std::string& prompt : prompts) {
    // A window keeps long lists from being refused at intake.
    if (pending.size() >= outputs.size() + limits::kMaxGenerateInFlight)
      outputs.push_back(pending[outputs.size()].get());
    Request request;
    request.prompt = prompt;
    request.sampling = sampling;
    pending.push_back(submit(std::move(request)));
  }
  while (outputs.size() < pending.size()) outputs.push_back(pending[outputs.size()].get());
  return outputs;
}

Output Engine::generate(Request request) {
  return submit(std::move(request)).get();
}

Output Engine::chat(const std::vector<Message>& messages, const SamplingParams& sampling) {
  Request request;
  request.messages = messages;
  request.sampling = sampling;
  return generate(std::move(request));
}

Handle Engine::submit(Request request, std::function<void(const Event&)> on_event) {
  generation_request wanted = value_or_raise(engine::to_generation_request(std::move(request)));
  engine::request_handlers handlers;
  handlers.answer = [on_event](const submission_answer& answer) {
    if (answer.refused) on_event(refusal_event(*answer.refused));
  };
  handlers.event = [on_event](generation_event event) { on_event(engine::to_event(std::move(event))); };
  Handle handle;
  handle.gate_ = state_->gate;
  handle.id_ = state_->client->submit(std::move(wanted), std::move(handlers)).value;
  return handle;
}

std::future<Output> Engine::submit(Request request) {
  generation_request wanted = value_or_raise(engine::to_generation_request(std::move(request)));
  const auto pending = std::make_shared<promised_answer>(wanted.n);
  engine::request_handlers handlers;
  handlers.answer = [pending](const submission_answer& answer) {
    pending->answer.add(answer);
    if (answer.refused) pending->settle();
  };
  handlers.event = [pending](generation_event event) {
    pending->answer.add(std::move(event));
    pending->settle();
  };
  std::future<Output> future = pending->promise.get_future();
  state_->client->submit(std::move(wanted), std::move(handlers));
  return future;
}

Stream Engine::stream(Request request) {
  generation_request wanted = value_or_raise(engine::to_generation_request(std::move(request)));
  const auto state = std::make_shared<detail::request_state>();
  state->choices_left = wanted.n;
  Stream stream(state);
  stream.handle_.gate_ = state_->gate;
  stream.handle_.id_ = state_->client->submit(std::move(wanted), stream_handlers(state)).value;
  return stream;
}

std::vector<std::int32_t> Engine::tokenize(const std::string& text, bool parse_special) const {
  return value_or_raise(state_->engine->tokenizer().encode(text, parse_special, false));
}

std::string Engine::detokenize(const std::vector<std::int32_t>& token_ids, bool skip_special) const {
  return state_->engine->tokenizer().decode(token_ids, skip_special);
}

std::int32_t Engine::max_model_len() const {
  return state_->engine->options().max_model_len;
}

std::string Engine::metrics() const {
  return state_->engine->metrics_text();
}

}  // namespace tandem

#pragma once
/// tandem inside a service that is built on CAF 0.17: the engine as an actor of your own actor_system.
///
///   tandem::EngineActor engine = tandem::spawn_engine(system, {.model = "smollm2-135m"});
///   self->request(engine, caf::infinite, tandem::Request{.prompt = "Hello"}).then([](const tandem::Output& output)
///   {…});
///
/// It can be monitored, linked, and published with io::middleman after add_message_types(config).

#include <caf/all.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tandem/engine.hpp"

namespace tandem {

using stream_atom = caf::atom_constant<caf::atom("stream")>;
using cancel_atom = caf::atom_constant<caf::atom("cancel")>;
using tokenize_atom = caf::atom_constant<caf::atom("tokenize")>;
using metrics_atom = caf::atom_constant<caf::atom("metrics")>;

/// A request that fails is answered with a caf::error that carries (code, sentence) as strings.
/// stream: the listener gets (id, Event) messages, in order, each choice's last one with a finish_reason.
using EngineActor = caf::typed_actor<caf::replies_to<Request>::with<Output>,
                                     caf::replies_to<stream_atom, Request, caf::actor>::with<std::uint64_t>,
                                     caf::reacts_to<cancel_atom, std::uint64_t>,
                                     caf::replies_to<tokenize_atom, std::string>::with<std::vector<std::int32_t>>,
                                     caf::replies_to<metrics_atom>::with<std::string>>;

using propose_atom = caf::atom_constant<caf::atom("propose")>;

/// DraftQuestion as a message.
struct DraftRequest {
  std::uint64_t sequence = 0;
  std::vector<std::int32_t> tokens;
  std::int32_t prompt_length = 0;
  std::int32_t k = 0;
};

/// Your own source of drafts as an actor, local or remote: answers with at most k ids. The rules of
/// tandem/draft_source.hpp hold; an error, or an actor that is gone, counts as an exception. The engine keeps the handle
/// until it ends: an actor that keeps the engine's in turn must be told to end.
using DraftSourceActor = caf::typed_actor<caf::replies_to<propose_atom, DraftRequest>::with<std::vector<std::int32_t>>>;

/// Loads the model on the calling thread (seconds) and spawns the engine's actors in `system`. Throws Error.
/// The engine ends with its actor: send it an exit message, or let its last handle go.
EngineActor spawn_engine(caf::actor_system& system, const Options& options);
/// The same, asking `drafts` in the place of options.draft_source.
EngineActor spawn_engine(caf::actor_system& system, const Options& options, DraftSourceActor drafts);

/// So that requests and outputs can cross the network.
void add_message_types(caf::actor_system_config& config);

namespace detail {

/// An optional as a list of none or one: CAF 0.17 knows lists.
template <class T>
std::vector<T> to_list(const std::optional<T>& value) {
  return value ? std::vector<T>{*value} : std::vector<T>{};
}
template <class T>
std::optional<T> to_optional(const std::vector<T>& list) {
  return list.empty() ? std::nullopt : std::optional<T>{list.front()};
}

}  // namespace detail

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SamplingParams& x) {
  std::vector<std::int32_t> max_tokens;
  std::vector<std::uint64_t> seed;
  const auto save = [&]() -> caf::error {
    max_tokens = detail::to_list(x.max_tokens);
    seed = detail::to_list(x.seed);
    return caf::none;
  };
  const auto load = [&]() -> caf::error {
    x.max_tokens = detail::to_optional(max_tokens);
    x.seed = detail::to_optional(seed);
    return caf::none;
  };
  return f(caf::meta::type_name("tandem::SamplingParams"), caf::meta::save_callback(save), max_tokens, seed,
           x.temperature, x.top_p, x.top_k, x.min_p, x.repetition_penalty, x.presence_penalty, x.frequency_penalty,
           x.min_tokens, x.stop, x.stop_token_ids, x.include_stop_str_in_output, x.ignore_eos, x.skip_special_tokens,
           x.n, x.logprobs, x.logit_bias, x.speculative_method, x.num_speculative_tokens,
           caf::meta::load_callback(load));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Message& x) {
  return f(caf::meta::type_name("tandem::Message"), x.role, x.content);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Request& x) {
  std::vector<std::int64_t> timeout_ms;
  const auto save = [&]() -> caf::error {
    if (x.timeout) timeout_ms.push_back(x.timeout->count());
    return caf::none;
  };
  const auto load = [&]() -> caf::error {
    x.timeout.reset();
    if (!timeout_ms.empty()) x.timeout = std::chrono::milliseconds(timeout_ms.front());
    return caf::none;
  };
  return f(caf::meta::type_name("tandem::Request"), caf::meta::save_callback(save), x.prompt, x.prompt_token_ids,
           x.messages, x.sampling, timeout_ms, caf::meta::load_callback(load));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, DraftRequest& x) {
  return f(caf::meta::type_name("tandem::DraftRequest"), x.sequence, x.tokens, x.prompt_length, x.k);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Logprob& x) {
  return f(caf::meta::type_name("tandem::Logprob"), x.token, x.logprob, x.rank, x.top);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Usage& x) {
  return f(caf::meta::type_name("tandem::Usage"), x.prompt_tokens, x.cached_tokens, x.completion_tokens, x.steps,
           x.draft_tokens, x.accepted_tokens);
}

namespace detail {

/// What Event and Choice share: how a choice ended.
template <class Inspector, class T, class... Fields>
typename Inspector::result_type inspect_with_end(Inspector& f, const char* name, T& x, Fields&... fields) {
  std::vector<std::string> stop_string;
  std::vector<std::int32_t> stop_token;
  const auto save = [&]() -> caf::error {
    stop_string = to_list(x.stop_string);
    stop_token = to_list(x.stop_token);
    return caf::none;
  };
  const auto load = [&]() -> caf::error {
    x.stop_string = to_optional(stop_string);
    x.stop_token = to_optional(stop_token);
    return caf::none;
  };
  return f(caf::meta::type_name(name), caf::meta::save_callback(save), x.text, x.token_ids, x.logprobs, x.finish_reason,
           stop_string, stop_token, fields..., caf::meta::load_callback(load));
}

}  // namespace detail

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Choice& x) {
  return detail::inspect_with_end(f, "tandem::Choice", x, x.usage);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Event& x) {
  return detail::inspect_with_end(f, "tandem::Event", x, x.choice, x.accepted, x.error);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Output& x) {
  return f(caf::meta::type_name("tandem::Output"), x.prompt_token_ids, x.choices);
}

}  // namespace tandem

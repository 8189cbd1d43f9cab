#include "actors/request_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "actors/structured_rules.hpp"
#include "config/limits.hpp"
#include "core/speculation/method_names.hpp"

namespace tandem {
namespace {

tl::unexpected<error> refuse(std::string message, std::string param) {
  return fail(error_code::invalid_argument, std::move(message), std::move(param));
}

result<void> check_range(const char* field, double value, double low, double high) {
  if (std::isfinite(value) && value >= low && value <= high) return {};
  return refuse(fmt::format("{} must be between {} and {}, but it is {}.", field, low, high, value), field);
}

result<void> check_ids(const char* field, std::span<const token_id> ids, std::size_t most,
                       const request_bounds& bounds) {
  if (ids.size() > most)
    return refuse(fmt::format("{} may hold at most {} token ids, but it holds {}.", field, most, ids.size()), field);
  for (token_id id : ids) {
    if (id < 0 || id >= bounds.vocabulary_size)
      return refuse(fmt::format("{} holds the token id {}, but the vocabulary ends at {}.", field, id,
                                bounds.vocabulary_size - 1),
                    field);
  }
  return {};
}

result<void> check_numbers(const sampling_params& sampling) {
  if (!std::isfinite(sampling.temperature) || sampling.temperature < 0)
    return refuse(fmt::format("temperature must be 0 or more, but it is {}.", sampling.temperature), "temperature");
  if (sampling.top_k < 0)
    return refuse(fmt::format("top_k must be 0 (off) or more, but it is {}.", sampling.top_k), "top_k");
  if (!(sampling.top_p > 0.0F && sampling.top_p <= 1.0F))
    return refuse(fmt::format("top_p must be above 0 and at most 1, but it is {}.", sampling.top_p), "top_p");
  if (!std::isfinite(sampling.repetition_penalty) || sampling.repetition_penalty <= 0)
    return refuse(fmt::format("repetition_penalty must be above 0, but it is {}.", sampling.repetition_penalty),
                  "repetition_penalty");
  if (auto ok = check_range("min_p", sampling.min_p, 0, 1); !ok) return ok;
  if (auto ok = check_range("presence_penalty", sampling.presence_penalty, -2, 2); !ok) return ok;
  return check_range("frequency_penalty", sampling.frequency_penalty, -2, 2);
}

result<void> check_logit_bias(const sampling_params& sampling, const request_bounds& bounds) {
  std::vector<token_id> ids;
  ids.reserve(sampling.logit_bias.size());
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (auto ok = check_range("logit_bias", bias, -100, 100); !ok) return ok;
    ids.push_back(id);
  }
  if (auto ok = check_ids("logit_bias", ids, limits::kMaxLogitBias, bounds); !ok) return ok;
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end())
    return refuse("logit_bias names the same token id twice; give each id one value.", "logit_bias");
  return {};
}

result<void> check_bad_words(const std::vector<std::string>& words) {
  if (words.size() > limits::kMaxBadWords)
    return refuse(
        fmt::format("bad_words may hold at most {} words, but it holds {}.", limits::kMaxBadWords, words.size()),
        "bad_words");
  for (const std::string& word : words) {
    if (word.empty()) return refuse("bad_words holds an empty word; leave it out.", "bad_words");
    if (word.size() > limits::kMaxBadWordBytes)
      return refuse(
          fmt::format("A bad word may have at most {} bytes, but one has {}.", limits::kMaxBadWordBytes, word.size()),
          "bad_words");
  }
  return {};
}

result<void> check_stops(const stop_params& stopping, const request_bounds& bounds) {
  if (stopping.stop.size() > limits::kMaxStopStrings)
    return refuse(fmt::format("stop may hold at most {} strings, but it holds {}.", limits::kMaxStopStrings,
                              stopping.stop.size()),
                  "stop");
  for (const auto& text : stopping.stop) {
    if (text.empty()) return refuse("stop holds an empty string; leave it out.", "stop");
    if (text.size() > limits::kMaxStopStringBytes)
      return refuse(fmt::format("A stop string may have at most {} bytes, but one has {}.", limits::kMaxStopStringBytes,
                                text.size()),
                    "stop");
  }
  return check_ids("stop_token_ids", stopping.stop_token_ids, limits::kMaxStopTokens, bounds);
}

result<void> check_logprobs(const logprob_params& wanted) {
  if (auto ok = check_range("logprobs", wanted.top, -1, limits::kMaxLogprobs); !ok) return ok;
  return check_range("prompt_logprobs", wanted.prompt_top, -1, limits::kMaxLogprobs);
}

result<void> check_speculation(const speculation_params& wanted, const request_bounds& bounds) {
  if (wanted.k && (*wanted.k < 0 || *wanted.k > bounds.max_draft_tokens))
    return refuse(fmt::format("num_speculative_tokens must be between 0 and {}, but it is {}.", bounds.max_draft_tokens,
                              *wanted.k),
                  "num_speculative_tokens");
  if (!wanted.method || *wanted.method == draft_method::none) return {};
  if (bounds.methods[static_cast<std::size_t>(*wanted.method)]) return {};
  return refuse(fmt::format("This server does not draft with the method {}; it has {}.", name_of(*wanted.method),
                            list_methods(bounds.methods)),
                "speculative");
}

result<void> check_counts(const generation_request& request) {
  if (auto ok = check_range("n", request.n, 1, limits::kMaxChoices); !ok) return ok;
  if (auto ok = check_range("best_of", request.best_of, 1, limits::kMaxChoices); !ok) return ok;
  if (request.best_of > 1 && request.best_of < request.n)
    return refuse(fmt::format("best_of is {}, but n is {} and no more than best_of choices can be shown.",
                              request.best_of, request.n),
                  "best_of");
  if (request.sampling.min_tokens < 0)
    return refuse(fmt::format("min_tokens must be 0 or more, but it is {}.", request.sampling.min_tokens),
                  "min_tokens");
  const auto& wanted = request.stopping.max_tokens;
  if (wanted && *wanted < 0)
    return refuse(fmt::format("max_tokens must be 0 or more, but it is {}.", *wanted), "max_tokens");
  if (wanted && *wanted == 0 && request.logprobs.prompt_top < 0)
    return refuse("max_tokens is 0, which only makes sense with prompt_logprobs; ask for at least one token.",
                  "max_tokens");
  if (request.timeout && request.timeout->count() <= 0)
    return refuse(fmt::format("timeout_ms must be above 0, but it is {}.", request.timeout->count()), "timeout_ms");
  // Beyond the bound, adding it to the time of submission could overflow.
  if (request.timeout && *request.timeout > limits::kMaxRequestTimeout)
    return refuse(fmt::format("timeout_ms may be at most {}, but it is {}; leave it out for no deadline.",
                              limits::kMaxRequestTimeout.count(), request.timeout->count()),
                  "timeout_ms");
  return {};
}

/// What changes the distribution or ends an output early has no meaning for a search through all outputs.
result<void> check_beams(const generation_request& request, const request_bounds& bounds) {
  if (!request.beams) return {};
  const sampling_params& sampling = request.sampling;
  const sampling_params plain;
  const std::pair<const char*, bool> unfit[] = {
      {"repetition_penalty", sampling.repetition_penalty != plain.repetition_penalty},
      {"presence_penalty", sampling.presence_penalty != plain.presence_penalty},
      {"frequency_penalty", sampling.frequency_penalty != plain.frequency_penalty},
      {"logit_bias", !sampling.logit_bias.empty()},
      {"allowed_token_ids", !sampling.allowed_token_ids.empty()},
      {"min_tokens", sampling.min_tokens > 0},
      {"bad_words", !request.bad_words.empty()},
      {"stop", !request.stopping.stop.empty()},
      {"stop_token_ids", !request.stopping.stop_token_ids.empty()},
      {"prompt_logprobs", request.logprobs.prompt_top >= 0},
      {"best_of", request.best_of > request.n},
      {request.structured ? request.structured->field.c_str() : "", request.structured.has_value()},
  };
  for (const auto& [field, given] : unfit) {
    if (given) return refuse(fmt::format("Beam search does not take {}; leave one of the two out.", field), field);
  }
  if (auto ok = check_range("length_penalty", request.beams->length_penalty, -10, 10); !ok) return ok;
  if (request.n > bounds.max_num_seqs)
    return refuse(fmt::format("Beam search runs its n beams together; n is {}, but at most {} sequences run at once "
                              "(--max-num-seqs).",
                              request.n, bounds.max_num_seqs),
                  "n");
  return {};
}

/// Longest prompt + answer that the KV and the model's length allow: the last token needs no KV of its own.
std::int64_t most_tokens(const request_bounds& bounds) {
  return std::min<std::int64_t>(bounds.max_model_len, bounds.kv_tokens + 1);
}

/// Most tokens of each of `beams` outputs that the KV holds beside each other: they share the prompt's full blocks.
std::int64_t most_beam_tokens(std::int64_t prompt, std::int32_t beams, const request_bounds& bounds) {
  const std::int64_t shared = (prompt - 1) / bounds.block_size;
  const std::int64_t own = (bounds.kv_tokens / bounds.block_size - shared) / beams;
  return own <= 0 ? 0 : (shared + own) * bounds.block_size - prompt + 1;
}

result<std::int32_t> resolve_beam_tokens(const generation_request& request, std::int64_t prompt,
                                         std::int32_t max_tokens, const request_bounds& bounds) {
  if (!request.beams) return max_tokens;
  const std::int64_t most = most_beam_tokens(prompt, request.n, bounds);
  if (most >= max_tokens) return max_tokens;
  if (!request.stopping.max_tokens && most > 0) return static_cast<std::int32_t>(most);
  return refuse(fmt::format("The prompt has {} tokens and the KV memory holds {} beams of at most {} tokens behind it "
                            "(--num-kv-blocks), but max_tokens is {}; lower it, or n.",
                            prompt, request.n, most, max_tokens),
                "max_tokens");
}

result<std::int32_t> resolve_max_tokens(const generation_request& request, std::int64_t prompt,
                                        const request_bounds& bounds) {
  const std::int64_t wanted = request.stopping.max_tokens.value_or(1);
  if (prompt + wanted > bounds.max_model_len)
    return refuse(fmt::format("The prompt has {} tokens and max_tokens is {}, but the model takes at most {} tokens "
                              "(--max-model-len) for both together.",
                              prompt, request.stopping.max_tokens ? wanted : 1, bounds.max_model_len),
                  "max_tokens");
  if (prompt + std::max<std::int64_t>(wanted, 1) - 1 > bounds.kv_tokens)
    return refuse(fmt::format("The prompt has {} tokens and max_tokens is {}, but the KV memory holds {} tokens in all "
                              "(--num-kv-blocks); shorten them.",
                              prompt, wanted, bounds.kv_tokens),
                  "max_tokens");
  if (!bounds.chunked_prefill && prompt > bounds.max_num_batched_tokens)
    return refuse(fmt::format("The prompt has {} tokens, but without chunked prefill a step takes at most {} tokens "
                              "(--max-num-batched-tokens).",
                              prompt, bounds.max_num_batched_tokens),
                  "prompt");
  if (request.stopping.max_tokens) return *request.stopping.max_tokens;
  return static_cast<std::int32_t>(most_tokens(bounds) - prompt);
}

std::shared_ptr<sampling_params> resolve_sampling(const generation_request& request, const request_bounds& bounds,
                                                  std::uint64_t seed) {
  auto sampling = std::make_shared<sampling_params>(request.sampling);
  sampling->seed = seed;
  std::sort(sampling->logit_bias.begin(), sampling->logit_bias.end());
  std::sort(sampling->allowed_token_ids.begin(), sampling->allowed_token_ids.end());
  auto& held = sampling->held_until_min_tokens;
  held.clear();
  if (sampling->min_tokens == 0) return sampling;
  held = bounds.end_tokens;
  held.insert(held.end(), request.stopping.stop_token_ids.begin(), request.stopping.stop_token_ids.end());
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  return sampling;
}

}  // namespace

result<void> check_request(const generation_request& request, const request_bounds& bounds) {
  if (auto ok = check_counts(request); !ok) return ok;
  if (auto ok = check_numbers(request.sampling); !ok) return ok;
  if (auto ok = check_logit_bias(request.sampling, bounds); !ok) return ok;
  if (auto ok = check_ids("allowed_token_ids", request.sampling.allowed_token_ids,
                          static_cast<std::size_t>(bounds.vocabulary_size), bounds);
      !ok)
    return ok;
  if (auto ok = check_bad_words(request.bad_words); !ok) return ok;
  if (auto ok = check_stops(request.stopping, bounds); !ok) return ok;
  if (auto ok = check_logprobs(request.logprobs); !ok) return ok;
  if (auto ok = check_structured(request, bounds); !ok) return ok;
  if (auto ok = check_beams(request, bounds); !ok) return ok;
  return check_speculation(request.speculation, bounds);
}

result<resolved_request> resolve_request(const generation_request& request, std::span<const token_id> prompt,
                                         const request_bounds& bounds, std::uint64_t drawn_seed,
                                         std::vector<std::vector<token_id>> bad_words) {
  if (prompt.empty()) return refuse("The prompt is empty; give at least one token.", "prompt");
  if (auto ok = check_ids("prompt", prompt, prompt.size(), bounds); !ok) return tl::unexpected(ok.error());
  const auto length = static_cast<std::int64_t>(prompt.size());
  auto max_tokens = resolve_max_tokens(request, length, bounds);
  if (max_tokens) max_tokens = resolve_beam_tokens(request, length, *max_tokens, bounds);
  if (!max_tokens) return tl::unexpected(max_tokens.error());
  if (request.sampling.min_tokens > *max_tokens)
    return refuse(fmt::format("min_tokens is {}, but this request may produce at most {} tokens.",
                              request.sampling.min_tokens, *max_tokens),
                  "min_tokens");
  for (const auto& word : bad_words) {
    if (word.size() > limits::kMaxBadWordTokens)
      return refuse(fmt::format("A bad word may have at most {} tokens, but one has {}.", limits::kMaxBadWordTokens,
                                word.size()),
                    "bad_words");
    if (auto ok = check_ids("bad_words", word, word.size(), bounds); !ok) return tl::unexpected(ok.error());
  }
  const std::uint64_t seed = request.sampling.seed.value_or(drawn_seed);
  auto sampling = resolve_sampling(request, bounds, seed);
  sampling->bad_words = std::move(bad_words);
  const auto& allowed = sampling->allowed_token_ids;
  const auto& held = sampling->held_until_min_tokens;
  if (!allowed.empty() && std::includes(held.begin(), held.end(), allowed.begin(), allowed.end()))
    return refuse("allowed_token_ids holds only tokens that min_tokens forbids at first; allow another token.",
                  "allowed_token_ids");
  return resolved_request{std::move(sampling), *max_tokens, seed};
}

}  // namespace tandem

#include "engine/public_types.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/speculative_config.hpp"
#include "core/finish_names.hpp"

namespace tandem::engine {
namespace {

result<config::weight_dtype> weight_dtype_of(const std::string& name) {
  if (name.empty() || name == "auto") return config::weight_dtype::automatic;
  if (name == "bf16") return config::weight_dtype::bf16;
  if (name == "fp32") return config::weight_dtype::fp32;
  return fail(error_code::invalid_argument, "dtype must be auto, bf16 or fp32, not \"" + name + "\".", "dtype");
}

result<config::weight_quantization> quantization_of(const std::string& name) {
  if (name.empty() || name == "none") return config::weight_quantization::none;
  if (name == "int8") return config::weight_quantization::int8;
  return fail(error_code::invalid_argument, "quantization must be none or int8, not \"" + name + "\".", "quantization");
}

result<config::kv_cache_dtype> kv_dtype_of(const std::string& name) {
  if (name.empty() || name == "auto") return config::kv_cache_dtype::automatic;
  if (name == "bf16") return config::kv_cache_dtype::bf16;
  if (name == "fp32") return config::kv_cache_dtype::fp32;
  if (name == "int8") return config::kv_cache_dtype::int8;
  return fail(error_code::invalid_argument, "kv_cache_dtype must be auto, bf16, fp32 or int8, not \"" + name + "\".",
              "kv_cache_dtype");
}

sampling_params to_sampling(const SamplingParams& given) {
  sampling_params sampling;
  sampling.temperature = given.temperature;
  sampling.top_k = given.top_k;
  sampling.top_p = given.top_p;
  sampling.min_p = given.min_p;
  sampling.repetition_penalty = given.repetition_penalty;
  sampling.presence_penalty = given.presence_penalty;
  sampling.frequency_penalty = given.frequency_penalty;
  sampling.min_tokens = given.min_tokens;
  sampling.seed = given.seed;
  sampling.logit_bias.assign(given.logit_bias.begin(), given.logit_bias.end());
  std::sort(sampling.logit_bias.begin(), sampling.logit_bias.end());
  return sampling;
}

stop_params to_stopping(const SamplingParams& given) {
  stop_params stopping;
  stopping.stop = given.stop;
  stopping.stop_token_ids = given.stop_token_ids;
  stopping.ignore_eos = given.ignore_eos;
  stopping.include_stop_str_in_output = given.include_stop_str_in_output;
  stopping.skip_special_tokens = given.skip_special_tokens;
  stopping.max_tokens = given.max_tokens;
  return stopping;
}

/// Members that are set, as specs: more than one is a mistake.
std::vector<structured_spec> to_structured(const StructuredOutput& given) {
  using form = structured_spec::form;
  std::vector<structured_spec> asked;
  const auto add = [&](form kind, const char* member, const std::string& text) {
    structured_spec spec;
    spec.kind = kind;
    spec.text = text;
    spec.strict = given.strict;
    spec.field = std::string("structured.") + member;
    asked.push_back(std::move(spec));
  };
  if (given.json_object) add(form::json_object, "json_object", {});
  if (!given.json_schema.empty()) add(form::json_schema, "json_schema", given.json_schema);
  if (!given.regex.empty()) add(form::regex, "regex", given.regex);
  if (!given.grammar.empty()) add(form::ebnf, "grammar", given.grammar);
  if (given.choice.empty()) return asked;
  add(form::choice, "choice", {});
  asked.back().choices = given.choice;
  return asked;
}

result<speculation_params> to_speculation(const SamplingParams& given) {
  speculation_params speculation;
  if (!given.speculative_method.empty()) {
    const auto method = config::parse_method(given.speculative_method);
    if (!method) return tl::unexpected(method.error());
    speculation.method = *method;
  }
  if (given.num_speculative_tokens >= 0) {
    speculation.k = given.num_speculative_tokens;
    speculation.adaptive = false;
  }
  return speculation;
}

chat_prompt to_chat(const std::vector<Message>& messages) {
  nlohmann::json list = nlohmann::json::array();
  for (const Message& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  chat_prompt chat;
  chat.messages_json = list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return chat;
}

prompt_source to_prompt(Request& request) {
  if (!request.messages.empty()) return to_chat(request.messages);
  if (!request.prompt_token_ids.empty()) return std::move(request.prompt_token_ids);
  const std::size_t size = request.prompt.size();
  return prompt_text{std::move(request.prompt), {{0, size}}, true};
}

std::vector<Logprob> to_logprobs(std::vector<token_logprobs> from) {
  std::vector<Logprob> logprobs;
  for (token_logprobs& entry : from) logprobs.push_back({entry.token, entry.logprob, entry.rank, std::move(entry.top)});
  return logprobs;
}

Choice to_choice(const collected_choice& from) {
  Choice choice;
  choice.text = from.text;
  choice.token_ids = from.tokens;
  choice.logprobs = to_logprobs(from.logprobs);
  if (from.end) {
    choice.finish_reason = name_of(from.end->reason);
    choice.stop_string = from.end->stop_string;
    choice.stop_token = from.end->stop_token;
  }
  const sequence_stats& stats = from.stats;
  choice.usage = {stats.prompt_tokens, stats.cached_tokens, stats.completion_tokens,
                  stats.steps,         stats.draft_tokens,  stats.accepted_tokens};
  return choice;
}

}  // namespace

result<config::engine_options> to_engine_options(const Options& options) {
  config::engine_options engine;
  const auto dtype = weight_dtype_of(options.dtype);
  if (!dtype) return tl::unexpected(dtype.error());
  const auto quantization = quantization_of(options.quantization);
  if (!quantization) return tl::unexpected(quantization.error());
  const auto kv_dtype = kv_dtype_of(options.kv_cache_dtype);
  if (!kv_dtype) return tl::unexpected(kv_dtype.error());
  engine.model = options.model;
  engine.dtype = *dtype;
  engine.quantization = *quantization;
  engine.kv_dtype = *kv_dtype;
  engine.threads = options.threads;
  engine.max_model_len = options.max_model_len;
  engine.max_num_seqs = options.max_num_seqs;
  engine.max_num_batched_tokens = options.max_num_batched_tokens;
  engine.block_size = options.block_size;
  engine.num_kv_blocks = options.num_kv_blocks;
  engine.kv_cache_memory_bytes = options.kv_cache_memory_bytes;
  engine.prefix_caching = options.enable_prefix_caching;
  engine.seed = options.seed;
  engine.speculation.draft_model = options.draft_model;
  engine.speculation.draft_heads = options.draft_heads;
  if (options.speculative_config.empty()) return engine;
  const auto applied = config::apply_speculative_config(options.speculative_config, engine.speculation);
  if (!applied) return tl::unexpected(applied.error());
  return engine;
}

result<generation_request> to_generation_request(Request request) {
  const int given = !request.prompt.empty() + !request.prompt_token_ids.empty() + !request.messages.empty();
  if (given > 1)
    return fail(error_code::invalid_argument, "give one of prompt, prompt_token_ids and messages, not several.",
                "prompt");
  const SamplingParams& wanted = request.sampling;
  const auto speculation = to_speculation(wanted);
  if (!speculation) return tl::unexpected(speculation.error());
  if (wanted.n < 1 || wanted.n > limits::kMaxChoices)
    return fail(error_code::invalid_argument, "n must be from 1 to " + std::to_string(limits::kMaxChoices) + ".", "n");
  auto structured = to_structured(wanted.structured);
  if (structured.size() > 1)
    return fail(error_code::invalid_argument, "give one member of StructuredOutput, not several.", "structured");
  generation_request result;
  if (!structured.empty()) result.structured = std::move(structured.front());
  result.sampling = to_sampling(wanted);
  result.stopping = to_stopping(wanted);
  result.logprobs.top = wanted.logprobs;
  result.speculation = *speculation;
  result.n = wanted.n;
  result.timeout = request.timeout;
  result.prompt = to_prompt(request);
  return result;
}

Event to_event(generation_event from) {
  Event event;
  event.choice = from.choice;
  event.text = std::move(from.text);
  event.token_ids = std::move(from.tokens);
  event.accepted.assign(from.accepted.begin(), from.accepted.end());
  event.logprobs = to_logprobs(std::move(from.logprobs));
  if (!from.end) return event;
  event.finish_reason = name_of(from.end->reason);
  event.stop_string = std::move(from.end->stop_string);
  event.stop_token = from.end->stop_token;
  event.error = std::move(from.end->message);
  return event;
}

Output to_output(const collected_answer& answer) {
  Output output;
  if (answer.prompt) output.prompt_token_ids = *answer.prompt;
  for (const collected_choice& choice : answer.choices) output.choices.push_back(to_choice(choice));
  return output;
}

std::string code_name(error_code code) {
  switch (code) {
    case error_code::invalid_argument:
      return "invalid_argument";
    case error_code::not_found:
      return "not_found";
    case error_code::too_large:
      return "too_large";
    case error_code::overloaded:
      return "overloaded";
    case error_code::unavailable:
      return "unavailable";
    case error_code::deadline:
      return "deadline";
    case error_code::cancelled:
      return "cancelled";
    case error_code::unsupported:
      return "unsupported";
    case error_code::corrupt:
      return "corrupt";
    case error_code::io:
      return "io";
    case error_code::device_failed:
      return "device_failed";
  }
  return "unknown";
}

}  // namespace tandem::engine

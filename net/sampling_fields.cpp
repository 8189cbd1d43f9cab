#include "net/sampling_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "config/limits.hpp"
#include "core/speculation/method_names.hpp"
#include "net/structured_fields.hpp"

namespace tandem::net {
namespace {

constexpr std::int64_t kMaxLength = limits::kMaxModelLength;

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, reason] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (reason != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// (0, high]: zero is outside.
std::optional<float> positive_number(field_reader& fields, std::string_view name, double high) {
  const auto value = fields.number(name, 0, high);
  if (!value) return std::nullopt;
  const auto narrow = static_cast<float>(*value);
  if (narrow > 0) return narrow;
  fields.refuse(name, fmt::format("'{}' must be above 0 and at most {}.", name, high));
  return std::nullopt;
}

float float_or(field_reader& fields, std::string_view name, double low, double high, float otherwise) {
  const auto value = fields.number(name, low, high);
  return value ? static_cast<float>(*value) : otherwise;
}

void read_logit_bias(field_reader& fields, const request_facts& facts, sampling_params& sampling) {
  const auto object = fields.object("logit_bias");
  if (!object) return;
  if (object->members().size() > limits::kMaxLogitBias) {
    return fields.refuse("logit_bias", fmt::format("'logit_bias' takes at most {} tokens.", limits::kMaxLogitBias));
  }
  std::map<token_id, float> bias;  // sorted and unique, the last of equal ids wins
  for (const auto& [key, value] : object->members()) {
    const auto id = parse_number<token_id>(key);
    double amount = 0;
    if (!id || *id < 0 || *id >= facts.vocabulary) {
      return fields.refuse("logit_bias",
                           fmt::format("'logit_bias' must have token ids from 0 to {} as keys.", facts.vocabulary - 1));
    }
    if (value.get(amount) || !(amount >= -100 && amount <= 100)) {
      return fields.refuse("logit_bias", "'logit_bias' must have numbers from -100 to 100 as values.");
    }
    bias[*id] = static_cast<float>(amount);
  }
  sampling.logit_bias.assign(bias.begin(), bias.end());
}

void read_allowed_tokens(field_reader& fields, const request_facts& facts, sampling_params& sampling) {
  auto allowed = fields.tokens("allowed_token_ids", facts.vocabulary, limits::kMaxVocabulary);
  if (!allowed) return;
  if (allowed->empty()) return fields.refuse("allowed_token_ids", "'allowed_token_ids' must name at least one token.");
  std::sort(allowed->begin(), allowed->end());
  allowed->erase(std::unique(allowed->begin(), allowed->end()), allowed->end());
  sampling.allowed_token_ids = std::move(*allowed);
}

void read_sampling(field_reader& fields, const request_facts& facts, sampling_params& sampling) {
  sampling.temperature = float_or(fields, "temperature", 0, 100, sampling.temperature);
  sampling.top_k = static_cast<std::int32_t>(
      std::max<std::int64_t>(0, fields.integer("top_k", -1, limits::kMaxVocabulary).value_or(0)));
  sampling.top_p = positive_number(fields, "top_p", 1).value_or(sampling.top_p);
  sampling.min_p = float_or(fields, "min_p", 0, 1, sampling.min_p);
  sampling.repetition_penalty =
      positive_number(fields, "repetition_penalty", 100).value_or(sampling.repetition_penalty);
  sampling.presence_penalty = float_or(fields, "presence_penalty", -2, 2, 0);
  sampling.frequency_penalty = float_or(fields, "frequency_penalty", -2, 2, 0);
  sampling.min_tokens = static_cast<std::int32_t>(fields.integer("min_tokens", 0, kMaxLength).value_or(0));
  if (const auto seed = fields.integer("seed", kMinInt64, kMaxInt64)) {
    sampling.seed = static_cast<std::uint64_t>(*seed);
  }
  read_logit_bias(fields, facts, sampling);
  read_allowed_tokens(fields, facts, sampling);
}

void add_stop(field_reader& fields, std::optional<std::string_view> text, stop_params& stopping) {
  if (!text) return fields.refuse("stop", "'stop' must be a string or a list of strings.");
  if (text->empty()) return fields.refuse("stop", "'stop' must not hold an empty string.");
  if (text->size() > limits::kMaxStopStringBytes) {
    return fields.refuse("stop", fmt::format("A stop string is longer than {} bytes.", limits::kMaxStopStringBytes));
  }
  stopping.stop.emplace_back(*text);
}

void read_stop_strings(field_reader& fields, stop_params& stopping) {
  const auto value = fields.any("stop");
  if (!value) return;
  if (value->is_string()) return add_stop(fields, as_string(*value), stopping);
  const auto list = as_array(*value);
  if (!list) return fields.refuse("stop", "'stop' must be a string or a list of strings.");
  if (list->size() > limits::kMaxStopStrings) {
    return fields.refuse("stop", fmt::format("'stop' takes at most {} strings.", limits::kMaxStopStrings));
  }
  for (const json_value& entry : *list) add_stop(fields, as_string(entry), stopping);
}

// The same bound under the names of completions, chat and responses.
void read_max_tokens(field_reader& fields, stop_params& stopping) {
  std::string_view given;
  for (const std::string_view name : {"max_tokens", "max_completion_tokens", "max_output_tokens"}) {
    const auto cap = fields.integer(name, 0, kMaxLength);
    if (!cap) continue;
    if (stopping.max_tokens && *stopping.max_tokens != *cap) {
      return fields.refuse(
          name, fmt::format("'{}' is {} and '{}' is {}; send one of them.", given, *stopping.max_tokens, name, *cap));
    }
    given = name;
    stopping.max_tokens = static_cast<std::int32_t>(*cap);
  }
}

void read_stopping(field_reader& fields, const request_facts& facts, stop_params& stopping) {
  read_stop_strings(fields, stopping);
  read_max_tokens(fields, stopping);
  if (auto ids = fields.tokens("stop_token_ids", facts.vocabulary, limits::kMaxStopTokens)) {
    stopping.stop_token_ids = std::move(*ids);
  }
  stopping.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  stopping.include_stop_str_in_output = fields.boolean("include_stop_str_in_output").value_or(false);
  stopping.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
}

void read_method(field_reader& fields, const request_facts& facts, std::string_view name,
                 speculation_params& speculation) {
  if (name == "auto") return;  // the server's default
  speculation.method = draft_method_named(name);
  const std::string offered = list_methods(facts.drafters);
  if (!speculation.method) {
    return fields.refuse("speculative",
                         fmt::format("Speculation method '{}' is not supported; this server has {}.", name, offered),
                         error_code::unsupported);
  }
  if (!facts.drafters[static_cast<std::size_t>(*speculation.method)]) {
    fields.refuse("speculative",
                  fmt::format("This server does not draft with the method {}; it has {}.", name, offered));
  }
}

void read_speculation(field_reader& fields, const request_facts& facts, speculation_params& speculation) {
  const auto value = fields.any("speculative");
  if (!value) return;
  bool wanted = true;
  if (!value->get(wanted)) {
    if (!wanted) speculation.method = draft_method::none;
    return;
  }
  const auto object = fields.object("speculative");
  if (!object) return;
  field_reader inner(*object);
  if (const auto name = inner.string("method", 64)) read_method(fields, facts, *name, speculation);
  if (const auto k = inner.integer("num_speculative_tokens", 0, facts.max_draft_tokens)) {
    speculation.k = static_cast<std::int32_t>(*k);
  }
  // A number alone is meant as it stands.
  speculation.adaptive = inner.boolean("adaptive").value_or(!speculation.k.has_value());
  if (inner.problem()) fields.refuse("speculative." + inner.problem()->param, inner.problem()->message);
}

void read_timeout(field_reader& fields, std::string_view header, generation_request& request) {
  const std::int64_t high = limits::kMaxRequestTimeout.count();
  std::optional<std::int64_t> wanted = fields.integer("timeout_ms", 1, high);
  if (!header.empty()) {
    const auto from_header = parse_number<std::int64_t>(header);
    if (!from_header || *from_header < 1 || *from_header > high) {
      return fields.refuse("X-Request-Timeout-Ms",
                           fmt::format("X-Request-Timeout-Ms must be a whole number from 1 to {}.", high));
    }
    wanted = wanted ? std::min(*wanted, *from_header) : *from_header;
  }
  if (wanted) request.timeout = std::chrono::milliseconds(*wanted);
}

void refuse_later_features(field_reader& fields) {
  for (const std::string_view name : {"logits_processors", "chat_template"})
    fields.refuse_unsupported(name);
  if (fields.boolean("use_beam_search").value_or(false)) fields.refuse_unsupported("use_beam_search");
  if (const auto words = fields.array("bad_words"); words && !words->empty()) fields.refuse_unsupported("bad_words");
  if (const auto suffix = fields.string("suffix", limits::kMaxBodyBytes); suffix && !suffix->empty()) {
    fields.refuse_unsupported("suffix");
  }
}

}  // namespace

std::string read_model(field_reader& fields, const request_facts& facts) {
  const std::string served = facts.model_names.empty() ? std::string() : facts.model_names.front();
  const auto wanted = fields.string("model", 4096);
  if (!wanted) return served;
  if (std::find(facts.model_names.begin(), facts.model_names.end(), *wanted) == facts.model_names.end()) {
    fields.refuse("model",
                  fmt::format("The model '{}' does not exist here; this server has '{}'.",
                              std::string(wanted->substr(0, 256)), served),
                  error_code::not_found);
  }
  return std::string(*wanted);
}

void read_generation_fields(field_reader& fields, std::string_view timeout_header, const request_facts& facts,
                            generation_request& request) {
  refuse_later_features(fields);
  read_sampling(fields, facts, request.sampling);
  read_stopping(fields, facts, request.stopping);
  read_speculation(fields, facts, request.speculation);
  request.structured = read_structured(fields);
  read_timeout(fields, timeout_header, request);
  request.n = static_cast<std::int32_t>(fields.integer("n", 1, limits::kMaxChoices).value_or(1));
  if (const auto best_of = fields.integer("best_of", 1, limits::kMaxChoices); best_of && *best_of != request.n) {
    fields.refuse("best_of", "'best_of' other than 'n' is not supported yet; leave it out.", error_code::unsupported);
  }
  constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
  request.priority = static_cast<std::int32_t>(fields.integer("priority", -kMaxInt32, kMaxInt32).value_or(0));
  if (const auto salt = fields.string("cache_salt", limits::kMaxCacheSaltBytes)) {
    if (salt->empty()) fields.refuse("cache_salt", "'cache_salt' must not be empty; leave it out instead.");
    request.cache_salt = std::string(*salt);
  }
  const auto& cap = request.stopping.max_tokens;
  if (cap && *cap > 0 && request.sampling.min_tokens > *cap) {
    fields.refuse("min_tokens", fmt::format("'min_tokens' is {}, above 'max_tokens' {}; lower it.",
                                            request.sampling.min_tokens, *cap));
  }
}

}  // namespace tandem::net

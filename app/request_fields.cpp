#include "app/request_fields.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "config/limits.hpp"
#include "config/speculative_config.hpp"

namespace tandem::app {
namespace {

using nlohmann::json;
using field_reader = std::function<result<void>(const json&, generation_request&)>;

tl::unexpected<error> wrong(const std::string& field, const std::string& wanted) {
  return fail(error_code::invalid_argument, fmt::format("the field \"{}\" must be {}.", field, wanted), field);
}

template <class T>
result<T> whole(const json& value, const std::string& field) {
  constexpr const char* kWanted = "a whole number in range";
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
    return static_cast<T>(value.get<std::uint64_t>());
  if (value.is_number_integer() && !value.is_number_unsigned() && std::is_signed_v<T> &&
      value.get<std::int64_t>() >= static_cast<std::int64_t>(std::numeric_limits<T>::min()))
    return static_cast<T>(value.get<std::int64_t>());
  if (!value.is_number_float()) return wrong(field, kWanted);
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it 4.0 no longer says which whole number is meant
  const double number = value.get<double>();
  const double least = std::max(-kExact, static_cast<double>(std::numeric_limits<T>::min()));
  const double most = std::min(kExact, static_cast<double>(std::numeric_limits<T>::max()));
  if (number != std::floor(number) || number < least || number > most) return wrong(field, kWanted);
  return static_cast<T>(number);
}

template <class T>
result<std::vector<T>> whole_list(const json& value, const std::string& field, std::size_t most) {
  if (!value.is_array() || value.size() > most)
    return wrong(field, fmt::format("a list of at most {} whole numbers", most));
  std::vector<T> numbers;
  for (const json& item : value) {
    const auto number = whole<T>(item, field);
    if (!number) return tl::unexpected(number.error());
    numbers.push_back(*number);
  }
  return numbers;
}

/// Reader of a field that is stored as it is; `place` says where.
template <class T, class Place>
field_reader whole_field(const char* field, Place place) {
  return [field, place](const json& value, generation_request& request) -> result<void> {
    const auto number = whole<T>(value, field);
    if (!number) return tl::unexpected(number.error());
    place(request) = *number;
    return {};
  };
}

/// The limit has two names; both only when equal.
field_reader token_limit_field(const char* field) {
  return [field](const json& value, generation_request& request) -> result<void> {
    const auto number = whole<std::int32_t>(value, field);
    if (!number) return tl::unexpected(number.error());
    std::optional<std::int32_t>& limit = request.stopping.max_tokens;
    if (limit && *limit != *number)
      return wrong("max_completion_tokens",
                   fmt::format("the same as \"max_tokens\", or left out: they are {} and {}", *limit, *number));
    limit = *number;
    return {};
  };
}

template <class Place>
field_reader number_field(const char* field, Place place) {
  return [field, place](const json& value, generation_request& request) -> result<void> {
    if (!value.is_number()) return wrong(field, "a number");
    place(request) = static_cast<float>(value.get<double>());
    return {};
  };
}

template <class Place>
field_reader flag_field(const char* field, Place place) {
  return [field, place](const json& value, generation_request& request) -> result<void> {
    if (!value.is_boolean()) return wrong(field, "true or false");
    place(request) = value.get<bool>();
    return {};
  };
}

result<void> read_stop(const json& value, generation_request& request) {
  const json list = value.is_string() ? json::array({value}) : value;
  if (!list.is_array()) return wrong("stop", "a string or a list of strings");
  for (const json& item : list) {
    if (!item.is_string()) return wrong("stop", "a string or a list of strings");
    request.stopping.stop.push_back(item.get<std::string>());
  }
  return {};
}

result<void> read_stop_ids(const json& value, generation_request& request) {
  auto ids = whole_list<token_id>(value, "stop_token_ids", limits::kMaxStopTokens);
  if (!ids) return tl::unexpected(ids.error());
  request.stopping.stop_token_ids = std::move(*ids);
  return {};
}

result<void> read_allowed_ids(const json& value, generation_request& request) {
  auto ids = whole_list<token_id>(value, "allowed_token_ids", limits::kMaxVocabulary);
  if (!ids) return tl::unexpected(ids.error());
  if (ids->empty()) return wrong("allowed_token_ids", "a list of at least one token id");
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
  request.sampling.allowed_token_ids = std::move(*ids);
  return {};
}

result<void> read_logit_bias(const json& value, generation_request& request) {
  constexpr const char* kWanted = "an object from token id to number, e.g. {\"50\": -100}";
  if (!value.is_object() || value.size() > limits::kMaxLogitBias) return wrong("logit_bias", kWanted);
  for (const auto& [key, bias] : value.items()) {
    const auto id = whole<token_id>(json::parse(key, nullptr, false), "logit_bias");
    if (!id || !bias.is_number()) return wrong("logit_bias", kWanted);
    request.sampling.logit_bias.emplace_back(*id, static_cast<float>(bias.get<double>()));
  }
  std::sort(request.sampling.logit_bias.begin(), request.sampling.logit_bias.end());
  return {};
}

/// false turns drafting off; an object names method, num_speculative_tokens, adaptive.
result<void> read_speculative(const json& value, generation_request& request) {
  speculation_params& speculation = request.speculation;
  if (value == false) {
    speculation.method = draft_method::none;
    return {};
  }
  if (!value.is_object()) return wrong("speculative", "false or an object");
  if (const auto found = value.find("method"); found != value.end() && !found->is_null()) {
    if (!found->is_string()) return wrong("speculative.method", "a string");
    const auto method = config::parse_method(found->get<std::string>());
    if (!method) return wrong("speculative.method", "none, auto, ngram, suffix, draft_model, medusa, eagle or custom");
    speculation.method = *method;
  }
  if (const auto found = value.find("num_speculative_tokens"); found != value.end() && !found->is_null()) {
    const auto count = whole<std::int32_t>(*found, "speculative.num_speculative_tokens");
    if (!count) return tl::unexpected(count.error());
    speculation.k = *count;
    speculation.adaptive = false;  // unless it is asked for beside a number
  }
  if (const auto found = value.find("adaptive"); found != value.end() && !found->is_null()) {
    if (!found->is_boolean()) return wrong("speculative.adaptive", "true or false");
    speculation.adaptive = found->get<bool>();
  }
  return {};
}

result<void> read_timeout(const json& value, generation_request& request) {
  const auto timeout = whole<std::int64_t>(value, "timeout_ms");
  if (!timeout || *timeout <= 0) return wrong("timeout_ms", "a whole number of milliseconds above 0");
  request.timeout = std::chrono::milliseconds(*timeout);
  return {};
}

/// Any 64-bit integer: a negative one counts as its two's complement.
result<void> read_seed(const json& value, generation_request& request) {
  if (value.is_number_integer() && !value.is_number_unsigned()) {
    request.sampling.seed = static_cast<std::uint64_t>(value.get<std::int64_t>());
    return {};
  }
  const auto seed = whole<std::uint64_t>(value, "seed");
  if (!seed) return tl::unexpected(seed.error());
  request.sampling.seed = *seed;
  return {};
}

/// The three fields of beam search come in any order; use_beam_search: false leaves the others without effect.
result<void> read_beams(const json& fields, generation_request& request) {
  const auto field = [&](const char* name) { return fields.value(name, json()); };
  const json wanted = field("use_beam_search");
  if (!wanted.is_null() && !wanted.is_boolean()) return wrong("use_beam_search", "true or false");
  beam_params beams;
  if (const json penalty = field("length_penalty"); !penalty.is_null()) {
    if (!penalty.is_number()) return wrong("length_penalty", "a number");
    beams.length_penalty = penalty.get<float>();
  }
  if (const json early = field("early_stopping"); !early.is_null()) {
    if (!early.is_boolean() && early != "never") return wrong("early_stopping", "true or false");
    beams.early_stopping = early == true;
  }
  if (wanted == true) request.beams = beams;
  return {};
}

bool is_beam_field(const std::string& name) {
  return name == "use_beam_search" || name == "length_penalty" || name == "early_stopping";
}

result<void> read_bad_words(const json& value, generation_request& request) {
  if (!value.is_array()) return wrong("bad_words", "a list of strings");
  for (const json& word : value) {
    if (!word.is_string()) return wrong("bad_words", "a list of strings");
    request.bad_words.push_back(word.get<std::string>());
  }
  return {};
}

result<void> read_cache_salt(const json& value, generation_request& request) {
  if (!value.is_string()) return wrong("cache_salt", "a string");
  request.cache_salt = value.get<std::string>();
  return {};
}

#define TANDEM_PLACE(member)                  \
  [](generation_request & request) -> auto& { \
    return request.member;                    \
  }

const std::unordered_map<std::string, field_reader>& readers() {
  static const std::unordered_map<std::string, field_reader> table = {
      {"temperature", number_field("temperature", TANDEM_PLACE(sampling.temperature))},
      {"top_p", number_field("top_p", TANDEM_PLACE(sampling.top_p))},
      {"min_p", number_field("min_p", TANDEM_PLACE(sampling.min_p))},
      {"repetition_penalty", number_field("repetition_penalty", TANDEM_PLACE(sampling.repetition_penalty))},
      {"presence_penalty", number_field("presence_penalty", TANDEM_PLACE(sampling.presence_penalty))},
      {"frequency_penalty", number_field("frequency_penalty", TANDEM_PLACE(sampling.frequency_penalty))},
      {"top_k", whole_field<std::int32_t>("top_k", TANDEM_PLACE(sampling.top_k))},
      {"min_tokens", whole_field<std::int32_t>("min_tokens", TANDEM_PLACE(sampling.min_tokens))},
      {"seed", read_seed},
      {"max_tokens", token_limit_field("max_tokens")},
      {"max_completion_tokens", token_limit_field("max_completion_tokens")},
      {"n", whole_field<std::int32_t>("n", TANDEM_PLACE(n))},
      {"best_of", whole_field<std::int32_t>("best_of", TANDEM_PLACE(best_of))},
      {"priority", whole_field<std::int32_t>("priority", TANDEM_PLACE(priority))},
      {"logprobs", whole_field<std::int32_t>("logprobs", TANDEM_PLACE(logprobs.top))},
      {"prompt_logprobs", whole_field<std::int32_t>("prompt_logprobs", TANDEM_PLACE(logprobs.prompt_top))},
      {"ignore_eos", flag_field("ignore_eos", TANDEM_PLACE(stopping.ignore_eos))},
      {"include_stop_str_in_output",
       flag_field("include_stop_str_in_output", TANDEM_PLACE(stopping.include_stop_str_in_output))},
      {"skip_special_tokens", flag_field("skip_special_tokens", TANDEM_PLACE(stopping.skip_special_tokens))},
      {"stop", read_stop},
      {"stop_token_ids", read_stop_ids},
      {"allowed_token_ids", read_allowed_ids},
      {"bad_words", read_bad_words},
      {"logit_bias", read_logit_bias},
      {"speculative", read_speculative},
      {"timeout_ms", read_timeout},
      {"cache_salt", read_cache_salt},
  };
  return table;
}

#undef TANDEM_PLACE

bool is_prompt_field(const std::string& name) {
  return name == "prompt" || name == "prompt_token_ids" || name == "messages" || name == "tools" ||
         name == "chat_template_kwargs" || name == "add_generation_prompt" || name == "id";
}

bool present(const json& fields, const char* name) {
  return fields.contains(name) && !fields[name].is_null();
}

result<prompt_source> read_chat(const json& fields) {
  if (!fields["messages"].is_array()) return wrong("messages", "a list of messages");
  chat_prompt chat;
  chat.messages_json = fields["messages"].dump();
  if (present(fields, "tools")) chat.tools_json = fields["tools"].dump();
  if (present(fields, "chat_template_kwargs")) chat.kwargs_json = fields["chat_template_kwargs"].dump();
  if (!present(fields, "add_generation_prompt")) return chat;
  if (!fields["add_generation_prompt"].is_boolean()) return wrong("add_generation_prompt", "true or false");
  chat.add_generation_prompt = fields["add_generation_prompt"].get<bool>();
  return chat;
}

result<prompt_source> read_prompt(const json& fields) {
  const int given = present(fields, "prompt") + present(fields, "prompt_token_ids") + present(fields, "messages");
  if (given != 1) return wrong("prompt", "there, or else \"messages\" or \"prompt_token_ids\", and only one of them");
  if (present(fields, "messages")) return read_chat(fields);
  if (present(fields, "prompt_token_ids")) {
    auto ids = whole_list<token_id>(fields["prompt_token_ids"], "prompt_token_ids", limits::kMaxModelLength);
    if (!ids) return tl::unexpected(ids.error());
    return prompt_source(std::move(*ids));
  }
  if (!fields["prompt"].is_string()) return wrong("prompt", "a string");
  auto text = fields["prompt"].get<std::string>();
  // The operator's own prompt may contain special tokens, as in /v1/completions.
  const std::size_t size = text.size();
  return prompt_source(prompt_text{std::move(text), {{0, size}}, true});
}

}  // namespace

result<generation_request> read_request(const json& fields) {
  if (!fields.is_object()) return fail(error_code::invalid_argument, "a request must be one JSON object.");
  generation_request request;
  auto prompt = read_prompt(fields);
  if (!prompt) return tl::unexpected(prompt.error());
  request.prompt = std::move(*prompt);
  for (const auto& [name, value] : fields.items()) {
    if (value.is_null() || is_prompt_field(name) || is_beam_field(name)) continue;
    const auto found = readers().find(name);
    if (found == readers().end()) {
      spdlog::warn("the field \"{}\" is unknown and ignored", name);
      continue;
    }
    if (auto read = found->second(value, request); !read) return tl::unexpected(read.error());
  }
  if (auto read = read_beams(fields, request); !read) return tl::unexpected(read.error());
  if (request.n < 1 || request.n > limits::kMaxChoices)
    return wrong("n", fmt::format("from 1 to {}", limits::kMaxChoices));
  return request;
}

}  // namespace tandem::app

#include "config/speculative_config.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "config/edit_distance.hpp"
#include "core/speculation/method_names.hpp"

namespace tandem::config {
namespace {

using json = nlohmann::json;
constexpr const char* kFlag = "--speculative-config";

tl::unexpected<error> refuse(error_code code, const std::string& sentence) {
  return fail(code, std::string(kFlag) + ": " + sentence, kFlag);
}

result<std::int32_t> whole_number(const json& value, const std::string& key, std::int32_t least, std::int32_t most) {
  const bool whole = value.is_number_integer() && value >= least && value <= most;
  if (whole) return value.get<std::int32_t>();
  return refuse(error_code::invalid_argument, "the key \"" + key + "\" must be a whole number from " +
                                                  std::to_string(least) + " to " + std::to_string(most) + ".");
}

result<std::string> text(const json& value, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  return refuse(error_code::invalid_argument, "the key \"" + key + "\" must be a string.");
}

using reader = std::function<result<void>(const json&, speculation_options&)>;

result<void> read_method(const json& value, speculation_options& target) {
  const auto name = text(value, "method");
  if (!name) return tl::unexpected(name.error());
  const auto method = parse_method(*name);
  if (!method) return tl::unexpected(method.error());
  target.method = *method;
  return {};
}

result<void> read_rule(const json& value, speculation_options& target) {
  if (value == "coupled")
    target.rule = acceptance_rule::coupled;
  else if (value == "rejection")
    target.rule = acceptance_rule::rejection;
  else
    return refuse(error_code::invalid_argument, "the key \"sampling\" must be \"coupled\" or \"rejection\".");
  return {};
}

result<void> read_probability(const json& value, speculation_options& target) {
  const bool fits = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1;
  if (!fits)
    return refuse(error_code::invalid_argument,
                  "the key \"suffix_decoding_min_token_prob\" must be a number from 0 to 1.");
  target.suffix_least_probability = value.get<double>();
  return {};
}

reader switch_reader(const char* key, std::optional<bool> speculation_options::*field) {
  return [=](const json& value, speculation_options& target) -> result<void> {
    if (!value.is_boolean())
      return refuse(error_code::invalid_argument, "the key \"" + std::string(key) + "\" must be true or false.");
    target.*field = value.get<bool>();
    return {};
  };
}

result<void> read_draft_tokens(const json& value, speculation_options& target) {
  if (value == "auto") {
    target.num_speculative_tokens.reset();
    target.adaptive = true;
    return {};
  }
  const auto number = whole_number(value, "num_speculative_tokens", 0, limits::kMaxDraftTokens);
  if (!number) return tl::unexpected(number.error());
  target.num_speculative_tokens = *number;
  return {};
}

result<void> read_draft_device(const json& value, speculation_options&) {
  if (value == "auto" || value == "cpu") return {};
  return refuse(error_code::unsupported, "the key \"draft_device\" must be \"auto\" or \"cpu\" in this build.");
}

template <class Target>
reader number_reader(const char* key, Target speculation_options::*field, std::int32_t least, std::int32_t most) {
  return [=](const json& value, speculation_options& target) -> result<void> {
    const auto number = whole_number(value, key, least, most);
    if (!number) return tl::unexpected(number.error());
    target.*field = *number;
    return {};
  };
}

const std::vector<std::pair<std::string, reader>>& readers() {
  static const std::vector<std::pair<std::string, reader>> table = {
      {"method", read_method},
      {"model",
       [](const json& value, speculation_options& target) -> result<void> {
         const auto name = text(value, "model");
         if (!name) return tl::unexpected(name.error());
         target.draft_model = *name;
         return {};
       }},
      {"num_speculative_tokens", read_draft_tokens},
      {"adaptive", switch_reader("adaptive", &speculation_options::adaptive)},
      {"prompt_lookup_min",
       number_reader("prompt_lookup_min", &speculation_options::prompt_lookup_min, 1, limits::kMaxNgram)},
      {"prompt_lookup_max",
       number_reader("prompt_lookup_max", &speculation_options::prompt_lookup_max, 1, limits::kMaxNgram)},
      {"suffix", switch_reader("suffix", &speculation_options::suffix)},
      {"suffix_decoding_max_tree_depth",
       number_reader("suffix_decoding_max_tree_depth", &speculation_options::suffix_longest_context, 2,
                     limits::kMaxSuffixContext)},
      {"suffix_decoding_min_token_prob", read_probability},
      {"suffix_memory_mib",
       number_reader("suffix_memory_mib", &speculation_options::suffix_mebibytes, 1, limits::kMaxSuffixMebibytes)},
      {"sampling", read_rule},
      {"disable_by_batch_size", number_reader("disable_by_batch_size", &speculation_options::disable_by_batch_size, 1,
                                              static_cast<std::int32_t>(limits::kMaxSequencesInFlight))},
      {"draft_device", read_draft_device},
  };
  return table;
}

result<void> apply_entry(const std::string& key, const json& value, speculation_options& target) {
  std::vector<std::string> known;
  for (const auto& [name, read] : readers()) {
    if (name == key) return read(value, target);
    known.push_back(name);
  }
  const std::string near = nearest_name(key, known);
  const std::string advice = near.empty() ? "." : "; did you mean \"" + near + "\"?";
  return refuse(error_code::invalid_argument, "there is no key \"" + key + "\"" + advice);
}

}  // namespace

result<std::optional<draft_method>> parse_method(const std::string& name) {
  if (name == "auto") return std::optional<draft_method>{};
  if (name == "medusa" || name == "eagle")
    return refuse(error_code::unsupported,
                  "the method \"" + name + "\" is not offered yet; use \"ngram\", \"suffix\" or \"draft_model\".");
  if (const auto method = draft_method_named(name)) return method;
  return refuse(
      error_code::invalid_argument,
      "there is no method \"" + name + "\"; use \"none\", \"auto\", \"ngram\", \"suffix\" or \"draft_model\".");
}

result<void> apply_speculative_config(std::string_view text, speculation_options& target) {
  const json object = json::parse(text, nullptr, false);
  if (object.is_discarded() || !object.is_object())
    return refuse(error_code::invalid_argument, "the value must be one JSON object, e.g. {\"method\": \"ngram\"}.");
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    if (auto applied = apply_entry(key, value, target); !applied) return applied;
  }
  if (target.prompt_lookup_min > target.prompt_lookup_max)
    return refuse(error_code::invalid_argument, "prompt_lookup_min must not be above prompt_lookup_max.");
  return {};
}

}  // namespace tandem::config

#include <CLI/CLI.hpp>

#include "app/request_fields.hpp"

namespace tandem::app {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kGroup = "Sampling";

template <class T>
CLI::Option* add_field(CLI::App& command, json& fields, const std::string& flag, const char* field,
                       const std::string& help) {
  return command
      .add_option_function<T>(
          flag, [&fields, field](const T& value) { fields[field] = value; }, help)
      ->group(kGroup);
}

/// One value each time the flag is given, so that it does not swallow the model's name behind it.
template <class T>
CLI::Option* add_list(CLI::App& command, json& fields, const std::string& flag, const char* field,
                      const std::string& help) {
  return add_field<std::vector<T>>(command, fields, flag, field, help)->allow_extra_args(false);
}

void add_json(CLI::App& command, json& fields, const std::string& flag, const char* field, const std::string& help) {
  const auto read = [&fields, field, flag](const std::string& text) {
    json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) throw CLI::ValidationError(flag, "the value is not JSON.");
    fields[field] = std::move(value);
  };
  command.add_option_function<std::string>(flag, read, help)->type_name("JSON")->group(kGroup);
}

void add_switch(CLI::App& command, json& fields, const std::string& flag, const char* field, bool value,
                const std::string& help) {
  command
      .add_flag_function(
          flag, [&fields, field, value](std::int64_t) { fields[field] = value; }, help)
      ->group(kGroup);
}

}  // namespace

void add_sampling_flags(CLI::App& command, json& fields) {
  fields = json::object();
  add_field<std::int32_t>(command, fields, "--max-tokens", "max_tokens", "Longest answer; default: what is left");
  add_field<double>(command, fields, "--temperature", "temperature", "0: the most probable token; default 1");
  add_field<double>(command, fields, "--top-p", "top_p", "Smallest set with this probability; default 1");
  add_field<std::int32_t>(command, fields, "--top-k", "top_k", "This many most probable tokens; default 0, off");
  add_field<double>(command, fields, "--min-p", "min_p", "Least probability, relative to the best; default 0");
  add_field<double>(command, fields, "--repetition-penalty", "repetition_penalty",
                    "Above 1: tokens that are already there become less probable; default 1");
  add_field<double>(command, fields, "--presence-penalty", "presence_penalty",
                    "Taken off the logits of tokens the answer has; default 0");
  add_field<double>(command, fields, "--frequency-penalty", "frequency_penalty",
                    "The same for each time the answer has them; default 0");
  add_list<std::string>(command, fields, "--stop", "stop", "Text that ends the answer; repeatable");
  add_list<std::int32_t>(command, fields, "--stop-token-ids", "stop_token_ids",
                         "Ids that end the answer, e.g. 2,7; repeatable")
      ->delimiter(',');
  add_field<std::int32_t>(command, fields, "--min-tokens", "min_tokens", "No end before this many tokens; default 0");
  add_field<std::int32_t>(command, fields, "--n", "n", "Answers per prompt; default 1");
  add_field<std::int32_t>(command, fields, "--logprobs", "logprobs", "Alternatives per token; default: none");
  add_field<std::int32_t>(command, fields, "--prompt-logprobs", "prompt_logprobs",
                          "The same for the prompt's tokens; default: none");
  add_field<std::int64_t>(command, fields, "--timeout-ms", "timeout_ms",
                          "The answer ends then with what it has; default: never");
  add_json(command, fields, "--logit-bias", "logit_bias", "Added to the logits of ids, e.g. {\"50\": -100}");
  add_json(command, fields, "--structured-outputs", "structured_outputs",
           "What the answer must be, e.g. {\"regex\": \"[0-9]+\"} or {\"json\": SCHEMA}; keys: docs/api.md");
  add_json(command, fields, "--speculative", "speculative",
           "Of these requests: false, or {\"method\": \"ngram\"}; keys: docs/api.md");
  add_switch(command, fields, "--ignore-eos", "ignore_eos", true, "Go on after the model's end token");
  add_switch(command, fields, "--include-stop-str-in-output", "include_stop_str_in_output", true, "Keep the stop text");
  add_switch(command, fields, "--no-skip-special-tokens", "skip_special_tokens", false, "Show special tokens");
}

void take_seed(const CLI::App& command, std::uint64_t seed, json& fields) {
  if (command.get_option("--seed")->count() > 0) fields["seed"] = seed;
}

}  // namespace tandem::app

#include "app/answer_json.hpp"

#include "core/finish_names.hpp"
#include "core/speculation/method_names.hpp"
#include "engine/public_types.hpp"

namespace tandem::app {
namespace {

using json = nlohmann::ordered_json;

json logprobs_to_json(const std::vector<token_logprobs>& logprobs, const text::tokenizer& tokenizer) {
  json list = json::array();
  for (const token_logprobs& entry : logprobs) {
    json top = json::array();
    for (const auto& [id, logprob] : entry.top)
      top.push_back({{"token_id", id}, {"token", std::string(tokenizer.token_bytes(id, false))}, {"logprob", logprob}});
    list.push_back({{"token_id", entry.token},
                    {"token", std::string(tokenizer.token_bytes(entry.token, false))},
                    {"logprob", entry.logprob},
                    {"rank", entry.rank},
                    {"top", std::move(top)}});
  }
  return list;
}

json stop_reason(const finish& end) {
  if (end.stop_string) return *end.stop_string;
  if (end.stop_token) return *end.stop_token;
  return nullptr;
}

json choice_to_json(std::size_t index, const engine::collected_choice& choice, const text::tokenizer& tokenizer) {
  json object = {{"index", index}, {"text", choice.text}, {"token_ids", choice.tokens}};
  object["finish_reason"] = choice.end ? json(name_of(choice.end->reason)) : json(nullptr);
  object["stop_reason"] = choice.end ? stop_reason(*choice.end) : json(nullptr);
  if (!choice.logprobs.empty()) object["logprobs"] = logprobs_to_json(choice.logprobs, tokenizer);
  if (choice.end && choice.end->reason == finish_reason::error) object["error"] = choice.end->message;
  return object;
}

/// Counts of all choices together; the prompt counts once. Times: the slowest choice.
sequence_stats total_stats(const engine::collected_answer& answer) {
  sequence_stats total;
  for (const engine::collected_choice& choice : answer.choices) {
    const sequence_stats& stats = choice.stats;
    total.prompt_tokens = stats.prompt_tokens;
    total.cached_tokens = std::max(total.cached_tokens, stats.cached_tokens);
    total.completion_tokens += stats.completion_tokens + stats.unshown_tokens;
    total.preemptions += stats.preemptions;
    total.add_work(stats);
    total.queue_ms = std::max(total.queue_ms, stats.queue_ms);
    total.prefill_ms = std::max(total.prefill_ms, stats.prefill_ms);
    total.decode_ms = std::max(total.decode_ms, stats.decode_ms);
  }
  return total;
}

json usage_to_json(const sequence_stats& stats) {
  return {{"prompt_tokens", stats.prompt_tokens},
          {"completion_tokens", stats.completion_tokens},
          {"total_tokens", stats.prompt_tokens + stats.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", stats.cached_tokens}}},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", stats.accepted_tokens},
            {"rejected_prediction_tokens", stats.draft_tokens - stats.accepted_tokens}}}};
}

json drafting_to_json(const sequence_stats& stats) {
  json methods = json::object();
  for (std::size_t i = 0; i < kDraftMethodNames.size(); ++i) {
    const sequence_stats::drafting& drafting = stats.by_method[i];
    if (drafting.runs == 0) continue;
    const std::vector<std::int32_t> accepted_at(drafting.accepted_at.begin(),
                                                drafting.accepted_at.begin() + drafting.longest());
    methods[std::string(kDraftMethodNames[i])] = {{"runs", drafting.runs},
                                                  {"draft_n", drafting.draft_tokens},
                                                  {"draft_n_accepted", drafting.accepted_tokens},
                                                  {"accepted_at", accepted_at}};
  }
  return methods;
}

json timings_to_json(const sequence_stats& stats) {
  const double accepted = stats.accepted_tokens;
  return {{"queue_ms", stats.queue_ms},
          {"prefill_ms", stats.prefill_ms},
          {"decode_ms", stats.decode_ms},
          {"draft_n", stats.draft_tokens},
          {"draft_n_accepted", stats.accepted_tokens},
          {"steps", stats.steps},
          {"mean_accepted_length", stats.steps == 0 ? json(nullptr) : json(1.0 + accepted / stats.steps)},
          {"spec_token_acceptance_rate", stats.draft_tokens == 0 ? json(nullptr) : json(accepted / stats.draft_tokens)},
          {"by_method", drafting_to_json(stats)}};
}

}  // namespace

json answer_to_json(const nlohmann::json& id, const engine::collected_answer& answer,
                    const text::tokenizer& tokenizer) {
  if (answer.refused) return error_to_json(id, *answer.refused);
  json object = {{"id", id}, {"prompt_token_ids", answer.prompt ? json(*answer.prompt) : json::array()}};
  object["outputs"] = json::array();
  for (std::size_t index = 0; index < answer.choices.size(); ++index)
    object["outputs"].push_back(choice_to_json(index, answer.choices[index], tokenizer));
  if (!answer.prompt_logprobs.empty()) object["prompt_logprobs"] = logprobs_to_json(answer.prompt_logprobs, tokenizer);
  const sequence_stats stats = total_stats(answer);
  object["usage"] = usage_to_json(stats);
  object["timings"] = timings_to_json(stats);
  return object;
}

json error_to_json(const nlohmann::json& id, const error& failed) {
  json problem = {{"message", failed.message}, {"param", failed.param}, {"code", engine::code_name(failed.code)}};
  return {{"id", id}, {"error", std::move(problem)}};
}

std::string to_line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tandem::app

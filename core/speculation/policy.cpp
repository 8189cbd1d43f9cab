#include "core/speculation/policy.hpp"

#include <algorithm>

#include "core/speculation/adaptive_policy.hpp"

namespace tandem {

draft_choice fixed_choice(const speculation_settings& settings, const speculation_params* wanted,
                          const per_method<bool>& available, std::int32_t decoding) {
  if (settings.disable_by_batch_size && decoding > *settings.disable_by_batch_size) return {};
  const draft_method method = wanted != nullptr ? wanted->method.value_or(settings.method) : settings.method;
  const std::int32_t asked = wanted != nullptr ? wanted->k.value_or(settings.k) : settings.k;
  const std::int32_t k = std::clamp(asked, 0, limits::kMaxDraftTokens);
  const bool can = method != draft_method::none && available[static_cast<std::size_t>(method)];
  if (!can || k == 0) return {};
  return {method, k, same_for_all(k)};
}

std::vector<draft_choice> fixed_policy::choose(const step_question& question) {
  const auto decoding = static_cast<std::int32_t>(
      std::count_if(question.sequences.begin(), question.sequences.end(), [](const auto& s) { return s.decoding; }));
  std::vector<draft_choice> choices;
  choices.reserve(question.sequences.size());
  for (const draft_question& asked : question.sequences)
    choices.push_back(fixed_choice(settings_, asked.wanted, question.available, decoding));
  return choices;
}

std::unique_ptr<speculation_policy> make_policy(const speculation_settings& settings) {
  if (settings.adaptive) return std::make_unique<adaptive_policy>(settings);
  return std::make_unique<fixed_policy>(settings);
}

}  // namespace tandem

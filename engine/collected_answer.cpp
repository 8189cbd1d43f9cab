#include "engine/collected_answer.hpp"

#include <algorithm>
#include <iterator>

#include "core/assert.hpp"

namespace tandem::engine {

void collected_answer::add(const submission_answer& answer) {
  refused = answer.refused;
  prompt = answer.prompt;
}

void collected_answer::add(generation_event event) {
  TANDEM_ASSERT(event.choice >= 0 && static_cast<std::size_t>(event.choice) < choices.size());
  collected_choice& choice = choices[static_cast<std::size_t>(event.choice)];
  TANDEM_ASSERT(!choice.end);
  choice.text += event.text;
  choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
  choice.accepted.insert(choice.accepted.end(), event.accepted.begin(), event.accepted.end());
  std::move(event.logprobs.begin(), event.logprobs.end(), std::back_inserter(choice.logprobs));
  if (event.choice == 0)
    std::move(event.prompt_logprobs.begin(), event.prompt_logprobs.end(), std::back_inserter(prompt_logprobs));
  choice.end = std::move(event.end);
  choice.stats = event.stats;
}

bool collected_answer::complete() const {
  return refused ||
         std::all_of(choices.begin(), choices.end(), [](const auto& choice) { return choice.end.has_value(); });
}

}  // namespace tandem::engine

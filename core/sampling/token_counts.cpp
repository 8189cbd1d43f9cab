#include "core/sampling/token_counts.hpp"

#include "core/assert.hpp"

namespace tandem {

void token_counts::add_prompt(std::span<const token_id> tokens) {
  for (const token_id token : tokens) counts_[token].in_prompt = true;
}

void token_counts::add_output(token_id token) {
  ++counts_[token].in_output;
}

void token_counts::remove_output(token_id token) {
  const auto found = counts_.find(token);
  TANDEM_ASSERT(found != counts_.end() && found->second.in_output > 0);
  --found->second.in_output;
  if (found->second.in_output == 0 && !found->second.in_prompt) counts_.erase(found);
}

}  // namespace tandem

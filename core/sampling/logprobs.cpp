#include <algorithm>
#include <cmath>

#include "core/assert.hpp"
#include "core/sampling/distribution.hpp"
#include "core/sampling/row_kernels.hpp"
#include "core/sampling/selection.hpp"

namespace tandem {
namespace {

std::int32_t rank_of(std::span<const float> logits, token_id token, float logit) {
  std::int32_t before = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const row::scored_id other{row::cleaned(logits[i]), static_cast<token_id>(i)};
    before += row::comes_before(other, {logit, token}) ? 1 : 0;
  }
  return before + 1;
}

}  // namespace

token_logprobs raw_logprobs(std::span<const float> raw_logits, token_id token, std::int32_t top) {
  TANDEM_ASSERT(token >= 0 && static_cast<std::size_t>(token) < raw_logits.size());
  const float maximum = row::largest(raw_logits);
  const double log_sum = std::log(row::sum_exp(raw_logits, maximum, 1.0F));
  const auto logprob_of = [&](float logit) {
    if (logit == row::kMinusInfinity) return row::kMinusInfinity;
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(maximum) - log_sum);
  };
  const float logit = row::cleaned(raw_logits[static_cast<std::size_t>(token)]);
  token_logprobs out{token, logprob_of(logit), rank_of(raw_logits, token, logit), {}};
  for (const row::scored_id& entry : row::select_largest(raw_logits, static_cast<std::size_t>(std::max(top, 0)))) {
    out.top.emplace_back(entry.id, logprob_of(entry.logit));
  }
  return out;
}

}  // namespace tandem

#include "app/perplexity.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/assert.hpp"

namespace tandem::app {

chunked_text::chunked_text(std::vector<token_id> tokens, token_id bos, std::int32_t context)
    : tokens_(std::move(tokens)), bos_(bos), context_(static_cast<std::size_t>(context)) {
  TANDEM_ASSERT(context >= 2);
}

std::size_t chunked_text::text_per_chunk() const {
  return bos_ == kNoToken ? context_ : context_ - 1;
}

std::size_t chunked_text::chunks() const {
  const std::size_t rest = tokens_.size() % text_per_chunk();
  const std::size_t least = bos_ == kNoToken ? 2 : 1;
  return tokens_.size() / text_per_chunk() + (rest >= least ? 1 : 0);
}

std::vector<token_id> chunked_text::prompt(std::size_t index) const {
  TANDEM_ASSERT(index < chunks());
  const std::size_t begin = index * text_per_chunk();
  const std::size_t end = std::min(tokens_.size(), begin + text_per_chunk());
  std::vector<token_id> prompt;
  prompt.reserve(context_);
  if (bos_ != kNoToken) prompt.push_back(bos_);
  prompt.insert(prompt.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                tokens_.begin() + static_cast<std::ptrdiff_t>(end));
  return prompt;
}

void likelihood_tally::add(double logprob) {
  const double nll = -logprob;
  const double before = nll - running_mean_;
  ++tokens_;
  sum_ += nll;
  running_mean_ += before / static_cast<double>(tokens_);
  squares_ += before * (nll - running_mean_);
}

double likelihood_tally::mean() const {
  return tokens_ == 0 ? 0 : sum_ / static_cast<double>(tokens_);
}

double likelihood_tally::mean_error() const {
  if (tokens_ < 2) return 0;
  const auto count = static_cast<double>(tokens_);
  return std::sqrt(squares_ / (count - 1) / count);
}

double likelihood_tally::perplexity() const {
  return std::exp(mean());
}

double likelihood_tally::perplexity_error() const {
  return perplexity() * mean_error();
}

}  // namespace tandem::app

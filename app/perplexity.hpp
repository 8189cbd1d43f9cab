#pragma once
/// Perplexity of a text: which prompts are scored, and what their log-probabilities add up to. No engine here.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace tandem::app {

/// A text cut into prompts of `context` tokens, each scored from its own beginning: tokens [0, c), [c, 2c), …, the last
/// one shorter. With a `bos` each prompt is that token and context − 1 of the text. Every token of a prompt but its
/// first is scored, given those before it in the same prompt. A rest without a token to score is left out.
class chunked_text {
 public:
  /// context ≥ 2; `bos` kNoToken: the model wants none.
  chunked_text(std::vector<token_id> tokens, token_id bos, std::int32_t context);

  std::size_t chunks() const;
  std::vector<token_id> prompt(std::size_t index) const;
  std::size_t tokens() const { return tokens_.size(); }  ///< of the text

 private:
  std::size_t text_per_chunk() const;

  std::vector<token_id> tokens_;
  token_id bos_;
  std::size_t context_;
};

/// Negative log-likelihoods of tokens, in nats. An infinite one makes the mean infinite and its error NaN.
class likelihood_tally {
 public:
  void add(double logprob);

  std::int64_t tokens() const { return tokens_; }
  double mean() const;  ///< nats per token; 0 without tokens
  double mean_error() const;  ///< standard error: sample deviation / √tokens; 0 below two tokens
  double perplexity() const;  ///< e^mean
  double perplexity_error() const;  ///< to first order: perplexity · mean_error

 private:
  std::int64_t tokens_ = 0;
  double sum_ = 0;
  double running_mean_ = 0;
  double squares_ = 0;  // Σ (x − mean)², by Welford's update
};

}  // namespace tandem::app

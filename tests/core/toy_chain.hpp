#pragma once
/// A target and a draft over 16 tokens whose logits depend on the last two tokens: small enough to write down the exact
/// joint distribution of three tokens, and a decoding loop that verifies drafts as a device does.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/sampling/acceptance.hpp"

namespace tandem::testing {

inline constexpr std::size_t kToyVocabulary = 16;

/// Logits after the tokens (before_last, last).
class toy_model {
 public:
  toy_model(std::uint32_t seed, double spread);
  /// `base` plus noise of standard deviation `noise`.
  toy_model(const toy_model& base, std::uint32_t seed, double noise);
  const std::array<float, kToyVocabulary>& logits(token_id before_last, token_id last) const;

 private:
  std::vector<std::array<float, kToyVocabulary>> table_;
};

enum class draft_kind : std::uint8_t {
  good,         ///< nearly the target
  poor,         ///< unrelated to it
  adversarial,  ///< deterministic: the target's least likely token, ids outside the vocabulary, repetitions
};

struct toy_setup {
  sampling_params params;  ///< with a grammar, a toy_grammar
  acceptance_rule rule = acceptance_rule::coupled;
  draft_kind drafts = draft_kind::good;
  std::int32_t k = 0;
};

/// Stands in for verify_drafts, so that wrong rules can be tried.
using verify_rule = std::function<acceptance_output(const acceptance_input&, token_counts&)>;

class toy_chain {
 public:
  explicit toy_chain(toy_setup setup);
  /// At least `count` output tokens of one seed.
  std::vector<token_id> generate(std::uint64_t seed, std::size_t count, const verify_rule& rule = verify_drafts) const;
  /// Probability of each triple (a, b, c) of first outputs, at index (a * 16 + b) * 16 + c.
  std::vector<double> exact_joint() const;

 private:
  struct drafted {
    std::vector<token_id> tokens;
    std::vector<std::vector<float>> q;
  };
  drafted draft(const std::vector<token_id>& known, std::uint64_t key) const;
  void append_adversarial(std::vector<token_id>& known, drafted& out) const;
  void append_sampled(std::vector<token_id>& known, token_counts& counts, std::uint64_t key, drafted& out) const;
  std::vector<double> exact_next(const std::vector<token_id>& known) const;

  toy_setup setup_;
  toy_model target_;
  toy_model draft_;
};

}  // namespace tandem::testing

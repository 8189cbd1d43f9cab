#pragma once
/// The two rules that verify a run of drafts against the target's distributions. Both keep the target's distribution.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/grammar.hpp"
#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/sampling/token_counts.hpp"
#include "core/step.hpp"
#include "core/stuck_reason.hpp"

namespace tandem {

/// A sequence's sampling state as the rule needs it.
struct acceptance_input {
  const sampling_params* params = nullptr;
  std::uint64_t key = 0;
  std::int64_t position = 0;                ///< absolute position of the token that row 0 yields
  std::int32_t output_index = 0;            ///< of that token
  std::span<const token_id> recent_output;  ///< before row 0, at least the last bad_word_reach() output tokens
  std::span<const token_id> drafts;
  std::span<const std::vector<float>> q;  ///< rejection rule: per draft, or empty for a deterministic source
  acceptance_rule rule = acceptance_rule::coupled;
  /// Raw logits of row i (0 … drafts.size()), as a writable scratch copy the rule may change. Called once per row, in
  /// order, and not at all for rows behind the first rejection.
  std::function<std::span<float>(std::int32_t row)> logits;
  /// What the output must follow; stands behind every known token. Null: anything may follow.
  grammar_matcher* matcher = nullptr;
  std::span<std::uint32_t> mask;  ///< room for a bit per logit, with a matcher
  /// The last draft is one that the target cannot draw: it has no row of its own.
  bool last_draft_impossible = false;
};

struct acceptance_output {
  std::vector<token_id> tokens;  ///< accepted drafts, then the token of the first differing row or the bonus token
  std::int32_t accepted = 0;
  std::optional<stuck_reason> stuck;  ///< no token can follow: `tokens` are accepted drafts only
};

/// Coupled: the target's own token of row i is a function of (logits, key, position+i); accept while the draft equals
/// it. Rejection (Leviathan et al. 2023, Chen et al. 2023): accept x ~ q with probability min(1, p(x)/q(x)), else draw
/// from max(0, p-q) normalised; after all were accepted a bonus token from p. `counts` holds every known token; counts
/// and matcher are left with the returned tokens added. Behind a grammar's end token rows are drawn freely: nobody
/// reads them.
acceptance_output verify_drafts(const acceptance_input& input, token_counts& counts);

}  // namespace tandem

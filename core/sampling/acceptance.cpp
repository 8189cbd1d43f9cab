#include "core/sampling/acceptance.hpp"

#include <algorithm>
#include <optional>

#include "core/assert.hpp"
#include "core/sampling/bad_words.hpp"
#include "core/sampling/constraint.hpp"
#include "core/sampling/distribution.hpp"
#include "core/sampling/noise.hpp"
#include "core/sampling/row_kernels.hpp"

namespace tandem {
namespace {

// Where one row stands: what the noise is keyed by.
struct row_place {
  std::uint64_t key = 0;
  std::int64_t position = 0;
};

// The distribution a draft was drawn from. Empty: the source was deterministic, all of the mass is on the draft.
struct draft_source {
  token_id draft = kNoToken;
  std::span<const float> q;

  double probability(token_id id) const {
    if (q.empty()) return id == draft ? 1.0 : 0.0;
    if (static_cast<std::size_t>(id) >= q.size()) return 0.0;
    const float value = q[static_cast<std::size_t>(id)];
    return value > 0.0F ? static_cast<double>(value) : 0.0;  // NaN counts as 0
  }
};

double probability_of(const std::vector<candidate>& target, token_id id) {
  const auto found = std::find_if(target.begin(), target.end(), [id](const candidate& c) { return c.id == id; });
  return found == target.end() ? 0.0 : static_cast<double>(found->probability);
}

bool accepts(double p, const draft_source& source, const row_place& at) {
  if (p <= 0.0) return false;
  const double q = source.probability(source.draft);
  return uniform(at.key, at.position, source.draft, noise_purpose::accept) * q < p;
}

// Inverse transform over weights in candidate order. `total` > 0 is their sum.
template <class Weight>
token_id draw_weighted(const std::vector<candidate>& target, double total, double u, const Weight& weight_of) {
  double left = u * total;
  token_id last = kNoToken;
  for (const candidate& c : target) {
    const double weight = weight_of(c);
    if (weight <= 0.0) continue;
    last = c.id;
    left -= weight;
    if (left < 0.0) break;
  }
  return last;
}

// From max(0, p - q), normalised. When rounding left nothing of it (p equals q), p itself is right.
token_id draw_residual(const std::vector<candidate>& target, const draft_source& source, const row_place& at) {
  const double u = uniform(at.key, at.position, 0, noise_purpose::residual);
  const auto probability = [](const candidate& c) { return static_cast<double>(c.probability); };
  const auto residual = [&](const candidate& c) { return std::max(0.0, probability(c) - source.probability(c.id)); };
  double total = 0;
  for (const candidate& c : target) total += residual(c);
  if (total > 0.0) return draw_weighted(target, total, u, residual);
  return draw_weighted(target, 1.0, u, probability);
}

struct row_verdict {
  token_id token = kNoToken;
  bool accepted = false;
};

row_verdict verify_by_rejection(std::span<const float> logits, const sampling_params& params,
                                const draft_source& source, const row_place& at, bool impossible) {
  std::vector<candidate> target;
  if (has_filters(params, logits.size())) target = filtered_distribution(logits, params);
  const double p = target.empty() ? static_cast<double>(unfiltered_probability(logits, params, source.draft))
                                  : probability_of(target, source.draft);
  if (!impossible && accepts(p, source, at)) return {source.draft, true};
  if (target.empty()) target = filtered_distribution(logits, params);
  return {draw_residual(target, source, at), false};
}

draft_source source_of(const acceptance_input& input, std::size_t row) {
  return {input.drafts[row], input.q.empty() ? std::span<const float>{} : std::span<const float>{input.q[row]}};
}

bool constrained(const acceptance_input& input) {
  return input.matcher != nullptr && !input.matcher->has_ended();
}

std::optional<stuck_reason> lost(const acceptance_input& input) {
  return input.matcher != nullptr ? input.matcher->lost() : std::nullopt;
}

/// The matcher takes the token, or why it does not although its mask had it.
std::optional<stuck_reason> take(const acceptance_input& input, token_id token) {
  if (!constrained(input) || input.matcher->accept(token)) return std::nullopt;
  return lost(input).value_or(stuck_reason::broken);
}

/// Nothing: grammar or bad words leave no token. `output`: as recent_output, of this row.
std::optional<row_verdict> verify_row(const acceptance_input& input, std::size_t row, const token_counts& counts,
                                      std::span<const token_id> output) {
  const sampling_params& params = *input.params;
  const auto index = static_cast<std::int32_t>(row);
  const std::span<float> logits = input.logits(index);
  if (penalties_active(params, input.output_index + index)) {
    apply_penalties(logits, params, counts, input.output_index + index);
  }
  if (!params.bad_words.empty()) {
    ban_bad_words(logits, params, output);
    if (row::largest(logits) == row::kMinusInfinity) return std::nullopt;
  }
  if (constrained(input)) {
    input.matcher->fill_mask(input.mask);
    if (!keep_masked(logits, input.mask)) return std::nullopt;
  }
  const row_place at{input.key, input.position + index};
  const bool is_draft = row < input.drafts.size();
  const bool impossible = input.last_draft_impossible && row + 1 == input.drafts.size();
  // An impossible draft has p = 0. The residual still subtracts q of the possible ids.
  if (is_draft && input.rule == acceptance_rule::rejection && params.temperature > 0.0F) {
    return verify_by_rejection(logits, params, source_of(input, row), at, impossible);
  }
  const token_id own = draw_coupled(logits, params, at.key, at.position);
  return row_verdict{own, is_draft && !impossible && own == input.drafts[row]};
}

}  // namespace

acceptance_output verify_drafts(const acceptance_input& input, token_counts& counts) {
  TANDEM_ASSERT(input.params != nullptr && input.logits);
  TANDEM_ASSERT(input.q.empty() || input.q.size() == input.drafts.size());
  acceptance_output out;
  out.tokens.reserve(input.drafts.size() + 1);
  std::vector<token_id> output(input.recent_output.begin(), input.recent_output.end());
  for (std::size_t row = 0; row <= input.drafts.size(); ++row) {
    const std::optional<row_verdict> verdict = verify_row(input, row, counts, output);
    out.stuck = verdict ? take(input, verdict->token) : lost(input).value_or(stuck_reason::nothing_fits);
    if (out.stuck) break;
    // Counted before the next row is looked at: draft i is judged as if drafts 0 … i-1 were committed.
    counts.add_output(verdict->token);
    output.push_back(verdict->token);
    out.tokens.push_back(verdict->token);
    if (!verdict->accepted) break;
    ++out.accepted;
  }
  return out;
}

}  // namespace tandem

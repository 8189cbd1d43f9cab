#include "core/speculation/shared_depth.hpp"

#include <algorithm>

#include "core/speculation/source_kind.hpp"

namespace tandem {
namespace {

/// The sequences that take part, and what the step comes to with them.
struct company {
  double tokens;
  double rows;
  double first_rows = 0;
  double seconds = 0;    // of catching up
  double sequences = 0;  // expected to need the source, as the rows above
  draft_method method = draft_method::none;
};

/// Of the drafts of the source that computes, when it is asked.
double expected_tokens(const draft_option& option, std::int32_t drafts) {
  const evidence_class own = option.computing_class();
  double sum = 0;
  for (std::int32_t j = 0; j < std::min(drafts, option.most_of(own)); ++j)
    sum += option.accepted[own][static_cast<std::size_t>(j)];
  return sum;
}

/// The forwards happen as often as anybody needs them, with those that then do.
double forwards_seconds(const cost_model& costs, const company& all, std::int32_t depth) {
  const double share = std::min(1.0, all.sequences);
  return share * (costs.forward_seconds(all.method, all.first_rows / share) +
                  (depth - 1) * costs.forward_seconds(all.method, all.sequences / share));
}

double seconds_of(const cost_model& costs, const step_base& base, const company& all, std::int32_t depth) {
  const double drafts = all.rows - base.rows;
  const double plain = costs.step_seconds(base.rows);
  const double rows = std::max(costs.step_seconds(all.rows) - plain, drafts * base.least_row_seconds);
  const double context = drafts * base.context * costs.seconds_per_position();
  return plain + rows + context + forwards_seconds(costs, all, depth) + all.seconds;
}

/// The most tokens a second with so many forwards; options in falling order of acceptance, so that some first ones of
/// them are the best company.
double best_speed(const cost_model& costs, const step_base& base, const std::vector<const draft_option*>& options,
                  std::int32_t depth) {
  const double plain = base.tokens / costs.step_seconds(base.rows);
  company all{.tokens = base.tokens, .rows = base.rows};
  double best = plain;
  for (const draft_option* option : options) {
    if (catch_up_is_too_dear(*option, depth, plain)) continue;
    const evidence_class own = option->computing_class();
    const double share = option->offers[own];
    if (share <= 0) continue;
    all.tokens += share * expected_tokens(*option, depth);
    all.rows += share * std::min(depth, option->most_of(own));
    all.first_rows += share * option->first_rows;
    all.seconds += option->once_seconds;
    all.method = option->computing();
    all.sequences += share;
    if (all.rows - base.rows > base.most_rows) break;
    best = std::max(best, all.tokens / seconds_of(costs, base, all, depth));
  }
  return best;
}

}  // namespace

bool catch_up_is_too_dear(const draft_option& option, std::int32_t depth, double tokens_per_second) {
  if (option.computing() == draft_method::none) return false;
  return option.once_seconds * tokens_per_second >
         option.offers[option.computing_class()] * expected_tokens(option, depth);
}

std::int32_t best_shared_depth(const cost_model& costs, const step_base& base,
                               const std::vector<const draft_option*>& options) {
  std::vector<const draft_option*> able;
  std::int32_t most = 0;
  for (const draft_option* option : options) {
    if (option == nullptr || option->computing() == draft_method::none) continue;
    able.push_back(option);
    most = std::max(most, option->most_of(option->computing_class()));
  }
  std::stable_sort(able.begin(), able.end(), [](const draft_option* a, const draft_option* b) {
    return a->accepted[a->computing_class()][0] > b->accepted[b->computing_class()][0];
  });
  std::int32_t best = 0;
  double best_tokens_per_second = base.tokens / costs.step_seconds(base.rows);
  for (std::int32_t depth = 1; depth <= most; ++depth) {
    const double reached = best_speed(costs, base, able, depth);
    if (reached <= best_tokens_per_second) continue;
    best = depth;
    best_tokens_per_second = reached;
  }
  return best;
}

}  // namespace tandem

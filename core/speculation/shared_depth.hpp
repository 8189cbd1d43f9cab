#pragma once
/// How many forwards a draft model or head should make in a step. A forward costs nearly the same for one sequence as
/// for many, so no single draft can be charged with it: first the number of forwards is settled as if all that take
/// part drafted equally many, then draft_search gives each sequence its own number within it. O(k · sequences).

#include <vector>

#include "core/speculation/draft_search.hpp"

namespace tandem {

/// 0: the source that computes, of which there is one at most, is not expected to pay. Others' options are passed over.
std::int32_t best_shared_depth(const cost_model& costs, const step_base& base,
                               const std::vector<const draft_option*>& options);

/// A draft model's option that has to catch up more than its drafts are worth at that speed.
bool catch_up_is_too_dear(const draft_option& option, std::int32_t depth, double tokens_per_second);

}  // namespace tandem

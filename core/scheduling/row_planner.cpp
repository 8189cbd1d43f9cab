#include "core/scheduling/row_planner.hpp"

#include <algorithm>
#include <numeric>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

using index = std::size_t;

/// Decoding wishes, least recently served first when not all can be served.
std::vector<index> decode_order(const std::vector<row_wish>& wishes, std::int32_t rows) {
  std::vector<index> order;
  for (index i = 0; i < wishes.size(); ++i) {
    if (wishes[i].decoding) order.push_back(i);
  }
  if (static_cast<std::int32_t>(order.size()) > rows) {
    std::stable_sort(order.begin(), order.end(),
                     [&](index a, index b) { return wishes[a].last_step < wishes[b].last_step; });
  }
  return order;
}

std::int32_t minimum_prefill_share(const std::vector<row_wish>& wishes, std::int32_t rows) {
  std::int64_t wanted = 0;
  std::uint64_t oldest_prefill = ~0ull;
  std::uint64_t oldest_decode = ~0ull;
  for (const row_wish& wish : wishes) {
    if (!wish.decoding) wanted += wish.pending;
    auto& oldest = wish.decoding ? oldest_decode : oldest_prefill;
    oldest = std::min(oldest, wish.last_step);
  }
  if (wanted == 0) return 0;
  // With a single row the two kinds take turns.
  const std::int32_t share =
      rows > 1 ? std::max(1, rows / limits::kMinPrefillShareDivisor) : (oldest_prefill <= oldest_decode ? 1 : 0);
  return static_cast<std::int32_t>(std::min<std::int64_t>(share, wanted));
}

std::int32_t grant_decode(const std::vector<row_wish>& wishes, std::int32_t rows, std::vector<row_grant>& grants) {
  for (const index i : decode_order(wishes, rows)) {
    if (rows == 0) break;
    grants[i].rows = 1;
    --rows;
  }
  return rows;
}

std::int32_t grant_drafts(const std::vector<row_wish>& wishes, std::int32_t rows, std::vector<row_grant>& grants) {
  for (index i = 0; i < wishes.size(); ++i) {
    if (grants[i].rows == 0) continue;
    grants[i].drafts = std::min(wishes[i].drafts, rows);
    rows -= grants[i].drafts;
  }
  return rows;
}

/// Returns the rows left. Without chunking a prompt that does not fit whole waits, and so do those behind it. What is
/// longer than any step (a preempted sequence with all it has generated) would wait for ever: it alone is split.
std::int32_t grant_prefill(const std::vector<row_wish>& wishes, row_budget budget, std::int32_t rows,
                           std::vector<row_grant>& grants) {
  for (index i = 0; i < wishes.size() && rows > 0; ++i) {
    if (wishes[i].decoding) continue;
    const bool fits_some_step = wishes[i].pending <= budget.rows;
    if (!budget.chunked_prefill && fits_some_step && wishes[i].pending > rows) break;
    grants[i].rows = std::min(wishes[i].pending, rows);
    rows -= grants[i].rows;
  }
  return rows;
}

}  // namespace

std::vector<row_grant> divide_rows(const std::vector<row_wish>& wishes, row_budget budget) {
  TANDEM_ASSERT(budget.rows > 0);
  std::vector<row_grant> grants(wishes.size());
  std::int32_t reserved = minimum_prefill_share(wishes, budget.rows);
  if (!budget.chunked_prefill && reserved > 0) {
    // All or nothing: the share is what the first waiting prompt needs, once it was passed over in a step.
    const auto first = std::find_if(wishes.begin(), wishes.end(), [](const row_wish& w) { return !w.decoding; });
    reserved = std::min(first->pending, budget.rows);
  }
  std::int32_t left = grant_decode(wishes, budget.rows - reserved, grants);
  left = grant_drafts(wishes, left, grants);
  left = grant_prefill(wishes, budget, left + reserved, grants);
  TANDEM_ASSERT(left >= 0);
  return grants;
}

}  // namespace tandem

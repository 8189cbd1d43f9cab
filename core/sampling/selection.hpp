#pragma once
/// The largest logits of a row without sorting it. Internal to core/sampling.

#include <span>
#include <vector>

#include "core/ids.hpp"

namespace tandem::row {

struct scored_id {
  float logit = 0;
  token_id id = kNoToken;
};

/// Descending logits, ties by ascending id: the order of everything that sampling shows or cuts.
inline bool comes_before(const scored_id& a, const scored_id& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// The `count` largest logits above -inf (cleaned, see row_kernels.hpp), or fewer when there are fewer; in order.
std::vector<scored_id> select_largest(std::span<const float> logits, std::size_t count);

}  // namespace tandem::row

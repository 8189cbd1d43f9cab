#pragma once
/// Turns granted rows into the work items of one step: what the target's stream and each draft source must be told.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/scheduling/scheduler.hpp"
#include "core/scheduling/sequence.hpp"
#include "core/step.hpp"

namespace tandem {

/// What one source does for a sequence in a step.
struct planned_drafts {
  draft_method method = draft_method::none;  ///< also when it only catches up
  std::int32_t drafts = 0;                   ///< k
  std::int32_t catch_up = 0;                 ///< known tokens the source takes in
  drafts_by_evidence most{};                 ///< within k
};

/// One sequence's part of the step being built.
struct planned_rows {
  sequence* seq = nullptr;
  std::int32_t rows = 0;
  /// The first one's drafts are taken if it has any; the second, which computes, is asked only where it has none.
  std::array<planned_drafts, kDraftOffers> sources;

  /// Rows reserved for drafts.
  std::int32_t drafts() const { return std::max(sources[0].drafts, sources[1].drafts); }
  void limit_drafts(std::int32_t most) {
    for (planned_drafts& part : sources) part.drafts = std::min(part.drafts, most);
  }
  const planned_drafts* part_of(draft_method method) const;
};

/// Slots whose life ended since a stream was last told; by stream: the target's, then each draft source's.
struct closed_slots {
  std::vector<slot_id> target;
  std::array<std::vector<slot_id>, kDraftMethods> sources;
};

struct built_step {
  std::shared_ptr<const step_work> work;
  std::vector<std::shared_ptr<const draft_work>> proposals;  ///< parallel to `methods`
  std::vector<draft_method> methods;
};

/// Marks what was told (openings, table entries) in the sequences and takes `closed`.
built_step build_step(step_id step, const std::vector<planned_rows>& plan, const scheduler_options& options,
                      closed_slots& closed);

}  // namespace tandem

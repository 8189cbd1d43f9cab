#pragma once
/// Turns granted rows into the work items of one step: what the target's stream and each draft source must be told.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/scheduling/scheduler.hpp"
#include "core/scheduling/sequence.hpp"
#include "core/step.hpp"

namespace tandem {

/// One sequence's part of the step being built.
struct planned_rows {
  sequence* seq = nullptr;
  std::int32_t rows = 0;
  draft_method method = draft_method::none;  ///< source that takes part, also when it only catches up
  std::int32_t drafts = 0;                   ///< k
  std::int32_t catch_up = 0;                 ///< known tokens the source takes in
  drafts_by_evidence most{};                 ///< within k
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

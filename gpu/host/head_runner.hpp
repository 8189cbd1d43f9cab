#pragma once
/// Turns draft_work into filled tickets with a draft head. Owner: the device; leader thread only.

#include <cstdint>
#include <vector>

#include "core/step.hpp"
#include "gpu/host/draft_head.hpp"
#include "gpu/host/slot_table.hpp"

namespace tandem::gpu::host {

class head_runner {
 public:
  /// `target_slots` has the sequences' sampling and counts.
  head_runner(draft_head& head, slot_table& target_slots, std::int32_t slots, std::int32_t blocks);

  /// Seals the ticket, unless somebody else closed it: then drafting stops early. `device_ns` is left to the caller.
  draft_outcome run(const draft_work& work);

 private:
  void add_run(const proposal& wanted, const draft_work& work);

  draft_head& head_;
  slot_table& target_slots_;
  slot_table slots_;  // block tables as the source was told them
  std::vector<head_run> runs_;
};

}  // namespace tandem::gpu::host

#pragma once
/// Turns draft_work into filled tickets: catch up, then draft, all sequences together. Owner: the device; leader thread
/// only.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/step.hpp"
#include "core/ticket.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/draft_sampler.hpp"
#include "gpu/host/model_executor.hpp"
#include "gpu/host/slot_table.hpp"

namespace tandem::gpu::host {

class draft_runner {
 public:
  /// `target_vocabulary`: ids from there on are never proposed.
  draft_runner(model_executor& executor, compute_team& team, std::int32_t slots, std::int32_t target_vocabulary);

  /// Seals the ticket, unless somebody else closed it: then drafting stops early. `device_ns` is left to the caller.
  draft_outcome run(const draft_work& work);

 private:
  /// One proposal of the work in hand.
  struct planned {
    const proposal* wanted = nullptr;
    slot_state* slot = nullptr;
    ticket::row* filled = nullptr;  ///< null with k = 0
    draft_outcome::entry* out = nullptr;
    std::int32_t caught_up = 0;  ///< of wanted->new_tokens
    bool ended = false;          ///< no draft can follow

    std::int32_t known() const { return wanted->first_position + static_cast<std::int32_t>(wanted->new_tokens.size()); }
    std::int32_t drafts() const { return static_cast<std::int32_t>(filled->tokens.size()); }
  };
  /// A row whose logits give the next draft of a sequence.
  struct yield {
    planned* part = nullptr;
    std::int32_t row = 0;
  };

  planned plan(const proposal& wanted, const draft_work& work);
  static void forget_drafts(planned& part);
  void catch_up();
  void draft_on(const draft_work& work);
  std::vector<planned*> able_to_draft(std::int32_t drafts_so_far);
  void draft_rows(std::span<planned* const> parts);
  void sample_all(std::span<const yield> yields);

  model_executor& executor_;
  compute_team& team_;
  slot_table slots_;
  draft_sampler sampler_;
  std::vector<planned> parts_;
};

}  // namespace tandem::gpu::host

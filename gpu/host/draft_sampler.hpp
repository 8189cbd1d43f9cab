#pragma once
/// Draws drafts as the target would draw tokens: same penalties as if the earlier drafts were committed, same noise.

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/ticket.hpp"
#include "gpu/host/slot_table.hpp"

namespace tandem::gpu::host {

/// Owner: a runner. Different threads may draw for different sequences at once.
class draft_sampler {
 public:
  /// `target_ids`: of a trimmed vocabulary, the target's id of each of its tokens; empty: the ids are the target's, and
  /// those from `target_vocabulary` on are never drawn.
  draft_sampler(std::int32_t target_vocabulary, std::vector<token_id> target_ids, std::int32_t threads);

  /// Appends the token at `position` to `run`, and its distribution where the rule needs it. Spoils `logits`. False
  /// when the filters left nothing: no draft can follow.
  bool draw(slot_state& slot, ticket::row& run, std::span<float> logits, std::int64_t position, std::int32_t thread);

  /// The slot's counts are of known tokens again.
  static void forget(slot_state& slot, const ticket::row& run);

 private:
  std::span<float> in_target_ids(std::span<float> logits, std::int32_t thread);
  bool draw_from_own(const slot_state& slot, ticket::row& run, std::span<float> logits, std::int64_t position) const;

  std::int32_t target_vocabulary_;
  std::vector<token_id> target_ids_;
  std::vector<std::vector<float>> rows_;  // per thread: a row of the target's vocabulary; only with target_ids_
};

}  // namespace tandem::gpu::host

#pragma once
/// Draft heads as the device's runners see them: after each step of the target they take in what the committed rows
/// left, and in between they draft from it. So they know all that the target knows and never have to catch up.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/ticket.hpp"
#include "gpu/host/slot_table.hpp"

namespace tandem::gpu::host {

/// Rows of the target's last forward that are committed: known tokens and accepted drafts of one sequence.
struct committed_rows {
  slot_id slot = kNoSlot;
  std::uint32_t slot_gen = 0;
  bool yielded = false;        ///< the last row gave a token that is not among `tokens`
  std::int32_t first_row = 0;  ///< of the forward
  std::int32_t first_position = 0;
  std::span<const token_id> tokens;  ///< one per row
  std::span<const block_id> table;
};

/// One sequence that wants drafts. `state` is the target's: its counts are of all known tokens.
struct head_run {
  slot_id slot = kNoSlot;
  slot_state* state = nullptr;
  std::span<const block_id> table;
  std::int32_t known = 0;  ///< tokens; the feature that counts is that of row known - 2, which gave the last of them
  token_id last = kNoToken;
  std::int32_t k = 0;
  ticket::row* filled = nullptr;
  bool ended = false;            ///< no further draft can follow
  std::int32_t feature_row = 0;  ///< the head's own place for what it carries from draft to draft

  std::int32_t drafts() const { return static_cast<std::int32_t>(filled->tokens.size()); }
};

/// Owner: the device; leader thread only.
class draft_head {
 public:
  virtual ~draft_head() = default;
  /// Right after the forward: its hidden states are still there. May throw std::bad_alloc: then some or all of the rows
  /// are lost to the head. It drafts nothing behind a row that it lost, and worse behind later ones until the sequence
  /// ends; what is drawn stays right, since the target judges every draft.
  virtual void take_in(std::span<const committed_rows> rows) = 0;
  /// Fills the runs that it knows the last row of; others stay empty. Stops early when `wanted` says so.
  virtual void draft(std::span<head_run> runs, const std::function<bool()>& wanted) = 0;

  virtual draft_method method() const = 0;
  virtual std::int32_t most_drafts() const = 0;  ///< of one run
  virtual std::uint64_t weight_bytes() const = 0;
  virtual std::uint64_t kept_bytes() const = 0;  ///< KV pages and features
};

}  // namespace tandem::gpu::host

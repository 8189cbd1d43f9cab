#pragma once
/// An EAGLE head: one transformer layer with pages of its own beside the target's (twins: the same block ids).
///
/// The entry at position p is made of the token at p and the feature of row p - 1, so it depends on tokens up to p only
/// and a block of the prefix cache carries valid entries whatever follows it. The row before a block's first is in the
/// block before: its feature is kept by block. Position 0 has no row before it and is never seen.
///
/// A few rows at a time are not worth reading the weights for: they wait until the head drafts behind them, a block
/// fills up (others may find it then), or there are limits::kMaxPutOffRows.

#include <cstdint>
#include <span>
#include <vector>

#include "config/limits.hpp"
#include "gpu/host/draft_head.hpp"
#include "gpu/host/draft_sampler.hpp"
#include "gpu/host/head_backlog.hpp"
#include "gpu/host/head_features.hpp"
#include "gpu/host/layer_executor.hpp"
#include "gpu/host/model_executor.hpp"
#include "gpu/host/packed_heads.hpp"
#include "gpu/host/row_worker.hpp"

namespace tandem::gpu::host {

class eagle_runner final : public draft_head {
 public:
  /// `cache`: one layer, as many blocks as the target's.
  eagle_runner(packed_heads heads, kv_cache cache, model_executor& target, compute_team& team, std::int32_t slots);

  /// Bytes of features that are kept per block.
  static std::uint64_t block_bytes(const packed_heads& heads);

  void take_in(std::span<const committed_rows> rows) override;
  void draft(std::span<head_run> runs, const std::function<bool()>& wanted) override;
  draft_method method() const override { return draft_method::eagle; }
  std::int32_t most_drafts() const override { return limits::kMaxDraftTokens; }
  std::uint64_t weight_bytes() const override { return heads_.bytes(); }
  std::uint64_t kept_bytes() const override;

 private:
  /// Token and feature of one entry; a null feature is zero.
  struct entry {
    token_id token = kNoToken;
    const float* feature = nullptr;
  };
  /// Committed rows of one sequence that are taken in now; `raw`: what the target left of them, raw_width_ floats each;
  /// null: they are those of the target's last forward from first_row on.
  struct taken_rows {
    slot_id slot = kNoSlot;
    std::uint32_t slot_gen = 0;
    std::int32_t first_position = 0;
    std::span<const token_id> tokens;
    std::span<const block_id> table;
    const float* raw = nullptr;
    std::int32_t first_row = 0;
  };
  /// Up to which position the entries of a slot's life are there.
  struct progress {
    std::uint32_t slot_gen = 0;
    std::int32_t end = 0;
  };

  bool put_off(const committed_rows& rows);
  void copy_raw(std::int32_t forward_row, float* to);
  /// Adds the rows that wait for the slot, if there are any.
  void collect(slot_id slot, std::uint32_t slot_gen, std::span<const block_id> table, std::vector<taken_rows>& into);
  void take(std::span<const taken_rows> all);
  void take_batch(std::span<const taken_rows> rows);
  void make_features(std::span<const taken_rows> rows);
  const float* feature_before(const taken_rows& rows) const;
  std::int32_t first_missing(const taken_rows& rows) const;
  void keep_features(const taken_rows& rows, const float* features);
  /// Puts the entries into the layer, whose rows are placed, and projects them.
  void project(std::span<const entry> entries);
  void combine_with_embedding(std::span<const entry> entries);
  void norm_with_embedding(std::span<const entry> entries);
  void embed(token_id token, float* out) const;

  bool can_go_on(const head_run& run) const;
  void draft_once(std::span<head_run*> runs);
  void draw(std::span<head_run*> runs, std::int32_t first_row);

  packed_heads heads_;
  const packed_eagle& head_;
  model_executor& target_;
  row_worker work_;
  layer_executor layer_;
  draft_sampler sampler_;
  std::int32_t hidden_size_;
  std::size_t first_captured_ = 0;  // of the layers it reads, in the target's captured states
  std::int32_t raw_width_;          // of what the target leaves of a row
  head_backlog backlog_;
  head_features features_;          // of the last row that was taken in
  std::vector<progress> progress_;  // by slot
  float_buffer block_features_;     // blocks × hidden: of each block's last row
  float_buffer row_features_;       // rows × hidden: of a step's committed rows; while drafting, the head's own
  float_buffer joined_;             // rows × widest input
  float_buffer logits_;
};

}  // namespace tandem::gpu::host

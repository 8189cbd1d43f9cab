#pragma once
/// Medusa heads: each guesses one place from the last hidden state alone.

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/host/draft_head.hpp"
#include "gpu/host/draft_sampler.hpp"
#include "gpu/host/head_features.hpp"
#include "gpu/host/model_executor.hpp"
#include "gpu/host/packed_heads.hpp"
#include "gpu/host/row_worker.hpp"

namespace tandem::gpu::host {

class medusa_runner final : public draft_head {
 public:
  medusa_runner(packed_heads heads, model_executor& target, compute_team& team, std::int32_t slots);

  void take_in(std::span<const committed_rows> rows) override;
  void draft(std::span<head_run> runs, const std::function<bool()>& wanted) override;
  draft_method method() const override { return draft_method::medusa; }
  std::int32_t most_drafts() const override { return static_cast<std::int32_t>(heads_.medusa.size()); }
  std::uint64_t weight_bytes() const override { return heads_.bytes(); }
  std::uint64_t kept_bytes() const override;

 private:
  /// Draft `place` of a run.
  struct guess {
    head_run* run = nullptr;
    std::int32_t place = 0;
    const float* feature = nullptr;
  };

  std::vector<guess> guesses_for(std::span<head_run> runs) const;
  void compute(std::span<const guess> guesses);
  void run_head(const packed_medusa_head& head, std::int32_t first, std::int32_t count);
  void draw(std::span<const guess> guesses);

  packed_heads heads_;
  model_executor& target_;
  row_worker work_;  // rows: guesses of one batch
  draft_sampler sampler_;
  std::int32_t hidden_size_;
  head_features features_;
  float_buffer hidden_, delta_, logits_;
};

}  // namespace tandem::gpu::host

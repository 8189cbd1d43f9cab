#pragma once
/// Runs transformer layers over rows of many sequences, on paged keys and values. Owner: a model's or a head's
/// executor; the device's leader thread only.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "gpu/host/attention.hpp"
#include "gpu/host/attention_plan.hpp"
#include "gpu/host/kv_cache.hpp"
#include "gpu/host/packed_model.hpp"
#include "gpu/host/rope_angles.hpp"
#include "gpu/host/row_worker.hpp"

namespace tandem::gpu::host {

/// Consecutive tokens of one sequence, the first at `first_position`. `table` covers every position up to the last row.
struct sequence_rows {
  std::span<const token_id> tokens;
  std::int32_t first_position = 0;
  std::span<const block_id> table;
};

using float_buffer = std::unique_ptr<float[]>;  // not initialised: pages that no step reaches cost nothing
float_buffer untouched_floats(std::int64_t rows, std::int64_t columns);

class layer_executor {
 public:
  struct options {
    std::int32_t max_positions = 0;     ///< of one sequence
    std::int32_t unseen_positions = 0;  ///< leading ones that no row attends to
  };
  layer_executor(const model_shape& shape, const model::rope_description& rope, kv_cache cache, row_worker& work,
                 options opts);

  const kv_cache& cache() const { return cache_; }
  kv_cache& cache() { return cache_; }
  std::int32_t max_positions() const { return options_.max_positions; }

  /// Where the rows of the next layers stand; returns their number. The sequences' tables must outlive them.
  std::int32_t place(std::span<const sequence_rows> sequences);

  /// Residual stream, rows × hidden. What the last layer added to it is still in delta().
  float* hidden(std::int32_t row) { return hidden_.get() + std::int64_t{row} * shape_.hidden; }
  const float* hidden(std::int32_t row) const { return hidden_.get() + std::int64_t{row} * shape_.hidden; }
  float* delta() { return delta_.get(); }
  /// A row of hidden size, free between the operations below.
  float* scratch(std::int32_t row) { return normalized_.get() + std::int64_t{row} * shape_.hidden; }

  /// Adds `delta` (may be null) and `bias` to the hidden states, normalises them and hands them to `matrix`.
  void normalize_for(const packed_matrix& matrix, const std::vector<float>& norm, const float* delta,
                     const std::vector<float>& bias);
  /// Query, key and value of the rows that were handed to the layer; keys and values go to their pages.
  void project(std::int32_t index, const packed_layer& layer);
  /// Attention and MLP behind project().
  void finish(std::int32_t index, const packed_layer& layer, std::span<const sequence_rows> sequences);
  /// hidden += delta.
  void add_delta();

 private:
  struct row_place {
    std::int32_t position = 0;
    block_id block = kNoBlock;
    std::int32_t offset = 0;
  };

  void prepare_heads(std::int32_t index, const packed_layer& layer, std::int32_t row);
  void gate(const packed_layer& layer);
  void attend(std::int32_t index, std::span<const sequence_rows> sequences);
  attention_task task_of(const attention_item& item, const kv_layer_view& view,
                         std::span<const sequence_rows> sequences) const;
  void run_item(const attention_item& item, const attention_task& task);

  model_shape shape_;
  kv_cache cache_;
  row_worker& work_;
  options options_;
  const row_ops& ops_;
  const attention_kernels& attention_;
  attention_plan attention_plan_;
  rope_angles rope_;

  std::int32_t rows_ = 0;  // placed
  std::vector<row_place> places_;
  std::vector<attention_rows> attention_rows_;
  std::unique_ptr<std::atomic<std::int32_t>[]> pieces_left_;  // per cut of the attention plan
  float_buffer hidden_, delta_, normalized_, query_key_value_, attended_, gate_up_, gated_, partials_;
};

}  // namespace tandem::gpu::host

#pragma once
/// Runs one model over rows of many sequences: prefill, decode and verification rows are one kind. Owner: the device;
/// only its leader thread calls it.

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/step.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/kv_cache.hpp"
#include "gpu/host/layer_executor.hpp"
#include "gpu/host/packed_model.hpp"
#include "gpu/host/row_worker.hpp"

namespace tandem::gpu::host {

class model_executor {
 public:
  struct options {
    isa set = isa::portable;
    std::int32_t max_rows = 0;       ///< of one forward; the arena is sized for them once
    std::int32_t max_positions = 0;  ///< of one sequence
  };
  model_executor(packed_model model, kv_cache cache, compute_team& team, options opts);

  const model_shape& shape() const { return model_.shape; }
  const packed_model& model() const { return model_; }
  const kv_cache& cache() const { return layers_.cache(); }
  const options& limits() const { return options_; }
  std::uint64_t weight_bytes() const { return model_.bytes(); }
  /// Rows logits() takes at once.
  std::int32_t max_logit_rows() const { return max_logit_rows_; }

  /// Whole blocks, all layers; no block is both read and written.
  void copy_blocks(std::span<const block_copy> copies);

  /// Stores keys and values of all rows and keeps their hidden states until the next call. At most max_rows rows. The
  /// numbers of a row depend on its own sequence only.
  void forward(std::span<const sequence_rows> sequences);

  /// Logits of rows of the last forward (counted through its sequences in order): rows.size() × vocabulary_size, valid
  /// until the next call, free to be overwritten.
  std::span<float> logits(std::span<const std::int32_t> rows);

  /// From the next forward on, keeps the hidden states that enter these layers too; = the number of layers: that leave
  /// the last. Before any forward. The answer is the index of the first of them, for captured().
  std::size_t capture_before(std::span<const std::int32_t> layers);
  /// Of a row of the last forward.
  const float* captured(std::size_t index, std::int32_t row) const;
  /// The hidden state of a row of the last forward behind the final norm: what the head multiplies. Different rows may
  /// be asked for by different threads.
  void final_hidden(std::int32_t row, float* out);

 private:
  void look_up_tokens(std::span<const sequence_rows> sequences);
  void capture(std::int32_t layer);

  packed_model model_;
  row_worker work_;
  layer_executor layers_;
  options options_;
  std::int32_t max_logit_rows_ = 0;

  std::int32_t rows_ = 0;  // of the last forward
  std::vector<token_id> tokens_;
  float_buffer logits_;
  std::vector<std::int32_t> captured_layers_;
  std::vector<float_buffer> captured_;  // parallel to captured_layers_
};

}  // namespace tandem::gpu::host

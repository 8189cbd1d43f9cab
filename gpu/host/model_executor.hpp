#pragma once
/// Runs one model over rows of many sequences: prefill, decode and verification rows are one kind. Owner: the device;
/// only its leader thread calls it.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "gpu/host/attention.hpp"
#include "gpu/host/attention_plan.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/kv_cache.hpp"
#include "gpu/host/packed_model.hpp"
#include "gpu/host/rope_angles.hpp"
#include "gpu/host/row_ops.hpp"

namespace tandem::gpu::host {

/// Consecutive tokens of one sequence, the first at `first_position`. `table` covers every position up to the last row.
struct sequence_rows {
  std::span<const token_id> tokens;
  std::int32_t first_position = 0;
  std::span<const block_id> table;
};

class model_executor {
 public:
  struct options {
    isa set = isa::portable;
    std::int32_t max_rows = 0;       ///< of one forward; the arena is sized for them once
    std::int32_t max_positions = 0;  ///< of one sequence
  };
  model_executor(packed_model model, kv_cache cache, compute_team& team, options opts);

  const model_shape& shape() const { return model_.shape; }
  const kv_cache& cache() const { return cache_; }
  const options& limits() const { return options_; }
  std::uint64_t weight_bytes() const { return model_.bytes(); }
  /// Rows logits() takes at once.
  std::int32_t max_logit_rows() const { return max_logit_rows_; }

  /// Stores keys and values of all rows and keeps their hidden states until the next call. At most max_rows rows. The
  /// numbers of a row depend on its own sequence only.
  void forward(std::span<const sequence_rows> sequences);

  /// From now on forward() also keeps, of every row, the hidden states that enter these layers, side by side in this
  /// order. 0 is the embedding, n the state after n layers; at most the number of layers. Before the first forward.
  void keep_features(std::vector<std::int32_t> layers);
  /// Floats that features() gives of one row: kept layers × hidden.
  std::int32_t feature_width() const;
  /// What was kept of a row of the last forward; valid until the next one.
  std::span<const float> features(std::int32_t row) const;
  /// The last hidden state of a row of the last forward, after the final norm, into `out`: hidden floats. This is what
  /// the output matrix is multiplied with. Any thread of the team, while no forward runs.
  void final_hidden(std::int32_t row, std::span<float> out) const;

  /// Logits of rows of the last forward (counted through its sequences in order): rows.size() × vocabulary_size, valid
  /// until the next call, free to be overwritten.
  std::span<float> logits(std::span<const std::int32_t> rows);

 private:
  struct row_place {
    std::int32_t position = 0;
    block_id block = kNoBlock;
    std::int32_t offset = 0;
  };
  using buffer = std::unique_ptr<float[]>;

  activations& input_of(const packed_matrix& matrix);
  void place_rows(std::span<const sequence_rows> sequences);
  void look_up_tokens(std::span<const sequence_rows> sequences);
  void keep_features_entering(std::int32_t layer);
  void run_layer(std::int32_t index, std::span<const sequence_rows> sequences);
  /// Adds delta_ and `bias` to the hidden states, normalises them and hands them to `matrix`.
  void normalize_for(const packed_matrix& matrix, const std::vector<float>& norm, const float* delta,
                     const std::vector<float>& bias);
  void prepare_heads(std::int32_t layer, std::int32_t row);
  void attend(std::int32_t layer, std::span<const sequence_rows> sequences);
  attention_task task_of(const attention_item& item, const kv_layer_view& view,
                         std::span<const sequence_rows> sequences) const;
  void run_item(const attention_item& item, const attention_task& task);
  void multiply(const packed_matrix& matrix, std::int32_t rows, float* out);
  template <class Body>
  void for_each_row(std::int32_t rows, Body body);

  packed_model model_;
  kv_cache cache_;
  compute_team& team_;
  options options_;
  const row_ops& ops_;
  const attention_kernels& attention_;
  attention_plan attention_plan_;
  rope_angles rope_;
  std::int32_t max_logit_rows_ = 0;

  std::vector<std::int32_t> feature_layers_;  // empty: nothing is kept
  std::int32_t rows_ = 0;                     // of the last forward
  std::vector<row_place> places_;
  std::vector<token_id> tokens_;
  std::vector<attention_rows> attention_rows_;
  std::unique_ptr<std::atomic<std::int32_t>[]> pieces_left_;                // per cut of the attention plan
  std::map<std::pair<activation_kind, std::int32_t>, activations> inputs_;  // by kind and columns
  buffer hidden_, delta_, normalized_, query_key_value_, attended_, gate_up_, gated_, logits_, partials_, features_;
};

}  // namespace tandem::gpu::host

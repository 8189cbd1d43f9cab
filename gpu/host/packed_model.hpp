#pragma once
/// A model's weights as the host device computes with them. Immutable once loaded; needs the model's file no longer.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/result.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "model/model.hpp"

namespace tandem::gpu::host {

/// Sizes the executor needs, from model::description.
struct model_shape {
  std::int32_t vocabulary_size = 0;
  std::int32_t hidden = 0;
  std::int32_t intermediate = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  float norm_epsilon = 0;

  std::int32_t query_width() const { return heads * head_dim; }
  std::int32_t kv_width() const { return kv_heads * head_dim; }
  std::int32_t qkv_width() const { return query_width() + 2 * kv_width(); }
};

/// Vectors are fp32; an empty one is a part this architecture does not have.
struct packed_layer {
  std::vector<float> attention_norm;
  packed_matrix query_key_value;  ///< stacked
  std::vector<float> query_key_value_bias;
  std::vector<float> query_norm;
  std::vector<float> key_norm;
  packed_matrix output;
  std::vector<float> output_bias;
  std::vector<float> mlp_norm;
  packed_matrix gate_up;  ///< stacked
  packed_matrix down;
};

struct packed_model {
  model_shape shape;
  model::rope_description rope;
  std::vector<packed_layer> layers;
  std::vector<float> final_norm;
  packed_matrix head;
  packed_matrix untied_embedding;  ///< empty when the head is the embedding
  bool tied = true;

  const packed_matrix& embedding() const { return tied ? head : untied_embedding; }
  std::uint64_t bytes() const;
};

/// Packs everything. `on_progress` gets the fraction done, may be empty. Errors: those of packed_matrix::pack; corrupt
/// when shapes contradict each other; unsupported for sizes the kernels do not have.
result<packed_model> pack_model(const model::model& source, packing how, isa set, compute_team& team,
                                const std::function<void(double)>& on_progress);

}  // namespace tandem::gpu::host

#pragma once
/// Draft heads as the host device computes with them. Immutable once loaded; needs the files no longer.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/result.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "gpu/host/packed_model.hpp"
#include "model/draft_heads.hpp"

namespace tandem::gpu::host {

struct packed_medusa_block {
  packed_matrix weight;
  std::vector<float> bias;  ///< empty: none
};
struct packed_medusa_head {
  std::vector<packed_medusa_block> blocks;
  std::optional<packed_matrix> output;  ///< absent: the target's own
};

/// Parts as in model::eagle_head; empty or absent ones likewise.
struct packed_eagle {
  model_shape shape;  ///< vocabulary_size: the target's
  model::rope_description rope;
  packed_matrix combine;
  std::vector<float> combine_bias;
  std::vector<float> embedding_norm;
  std::vector<float> feature_norm;
  bool residual_is_normed = false;
  packed_layer layer;
  std::vector<float> final_norm;
  std::optional<packed_matrix> embedding;
  std::optional<packed_matrix> output;
  std::vector<std::int32_t> feature_layers;
};

struct packed_heads {
  model::head_kind kind = model::head_kind::medusa;
  std::int32_t draft_vocabulary = 0;
  std::vector<token_id> target_ids;
  std::vector<packed_medusa_head> medusa;
  packed_eagle eagle;

  std::uint64_t bytes() const;
};

/// Errors: those of pack_model.
result<packed_heads> pack_heads(const model::draft_heads& source, packing how, isa set, compute_team& team);

}  // namespace tandem::gpu::host

#pragma once
/// What packing a model and packing draft heads share.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "core/result.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "gpu/host/packed_model.hpp"
#include "model/model.hpp"

namespace tandem::gpu::host {

/// Packs matrices one after the other; the first failure sticks. Owner: one loading.
class weight_packer {
 public:
  /// `total_bytes` as stored: `on_progress` (may be empty) gets the fraction of them that is done.
  weight_packer(std::size_t total_bytes, packing how, isa set, compute_team& team,
                const std::function<void(double)>& on_progress)
      : how_(how), set_(set), team_(team), on_progress_(on_progress), total_(total_bytes) {}

  /// Stacked row-wise.
  packed_matrix pack(std::initializer_list<const model::tensor*> parts);
  const std::optional<error>& failure() const { return failed_; }

 private:
  packed_matrix::parallel_for parallel();

  packing how_;
  isa set_;
  compute_team& team_;
  const std::function<void(double)>& on_progress_;
  std::size_t total_ = 0;
  std::size_t done_ = 0;
  std::optional<error> failed_;
};

/// Empty for null.
std::vector<float> vector_of(const model::tensor* weight);
model_shape shape_of(const model::description& from);
/// Errors: corrupt, unsupported: sizes that contradict each other or that the kernels do not have.
result<void> check_shape(const model_shape& shape, const model::description& from);
packed_layer pack_layer(const model::layer& from, const model_shape& shape, weight_packer& pack);
/// Narrow models need more of their activations: docs/decisions/0006, 0011.
packing packing_for(const model_shape& shape, packing asked);

}  // namespace tandem::gpu::host

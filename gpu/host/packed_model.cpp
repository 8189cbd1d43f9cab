#include "gpu/host/packed_model.hpp"

#include <utility>

#include "core/assert.hpp"
#include "gpu/host/weight_packer.hpp"

namespace tandem::gpu::host {

std::uint64_t packed_model::bytes() const {
  std::uint64_t total = head.bytes() + (tied ? 0 : untied_embedding.bytes());
  for (const packed_layer& layer : layers)
    total += layer.query_key_value.bytes() + layer.output.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  return total;
}

result<packed_model> pack_model(const model::model& source, packing how, isa set, compute_team& team,
                                const std::function<void(double)>& on_progress) {
  const model::description& from = source.describe();
  TANDEM_ASSERT(from.embedding != nullptr && from.final_norm != nullptr && !from.layers.empty());
  packed_model packed;
  packed.shape = shape_of(from);
  packed.rope = from.rope;
  if (auto fits = check_shape(packed.shape, from); !fits) return tl::unexpected(fits.error());
  std::size_t total = 0;
  for (const model::tensor& each : source.tensors()) total += each.data.size();
  weight_packer pack(total, packing_for(packed.shape, how), set, team, on_progress);
  packed.layers.reserve(from.layers.size());
  for (const model::layer& layer : from.layers) {
    packed.layers.push_back(pack_layer(layer, packed.shape, pack));
    if (pack.failure()) return tl::unexpected(*pack.failure());
  }
  packed.final_norm = vector_of(from.final_norm);
  packed.tied = from.output == nullptr || from.output == from.embedding;
  packed.head = pack.pack({packed.tied ? from.embedding : from.output});
  if (!packed.tied) packed.untied_embedding = pack.pack({from.embedding});
  if (pack.failure()) return tl::unexpected(*pack.failure());
  return packed;
}

}  // namespace tandem::gpu::host

#include "gpu/host/packed_heads.hpp"

#include <utility>

#include "gpu/host/weight_packer.hpp"

namespace tandem::gpu::host {
namespace {

std::optional<packed_matrix> pack_if_there(const model::tensor* weight, weight_packer& pack) {
  if (weight == nullptr) return std::nullopt;
  return pack.pack({weight});
}

packed_medusa_head pack_medusa(const model::medusa_head& from, weight_packer& pack) {
  packed_medusa_head head;
  for (const model::medusa_block& block : from.blocks)
    head.blocks.push_back({pack.pack({block.weight}), vector_of(block.bias)});
  head.output = pack_if_there(from.output, pack);
  return head;
}

packed_eagle pack_eagle(const model::head_description& from, weight_packer& pack) {
  const model::eagle_head& parts = from.eagle;
  packed_eagle head;
  head.shape = shape_of(from.sizes);
  head.rope = from.sizes.rope;
  head.combine = pack.pack({parts.combine});
  head.combine_bias = vector_of(parts.combine_bias);
  head.embedding_norm = vector_of(parts.embedding_norm);
  head.feature_norm = vector_of(parts.feature_norm);
  head.residual_is_normed = parts.residual_is_normed;
  head.layer = pack_layer(parts.transformer, head.shape, pack);
  head.final_norm = vector_of(parts.final_norm);
  head.embedding = pack_if_there(parts.embedding, pack);
  head.output = pack_if_there(parts.output, pack);
  head.feature_layers = parts.feature_layers;
  return head;
}

std::uint64_t bytes_of(const std::optional<packed_matrix>& matrix) {
  return matrix ? matrix->bytes() : 0;
}

}  // namespace

std::uint64_t packed_heads::bytes() const {
  std::uint64_t total = 0;
  for (const packed_medusa_head& head : medusa) {
    for (const packed_medusa_block& block : head.blocks) total += block.weight.bytes();
    total += bytes_of(head.output);
  }
  if (kind == model::head_kind::medusa) return total;
  const packed_layer& layer = eagle.layer;
  return total + eagle.combine.bytes() + layer.query_key_value.bytes() + layer.output.bytes() + layer.gate_up.bytes() +
         layer.down.bytes() + bytes_of(eagle.embedding) + bytes_of(eagle.output);
}

result<packed_heads> pack_heads(const model::draft_heads& source, packing how, isa set, compute_team& team) {
  const model::head_description& from = source.describe();
  packed_heads packed;
  packed.kind = from.kind;
  packed.draft_vocabulary = from.draft_vocabulary;
  packed.target_ids = from.target_ids;
  const model_shape shape = shape_of(from.sizes);
  const std::function<void(double)> nobody;
  weight_packer pack(0, packing_for(shape, how), set, team, nobody);
  if (from.kind == model::head_kind::medusa) {
    for (const model::medusa_head& head : from.medusa) packed.medusa.push_back(pack_medusa(head, pack));
  } else {
    if (auto fits = check_shape(shape, from.sizes); !fits) return tl::unexpected(fits.error());
    packed.eagle = pack_eagle(from, pack);
  }
  if (pack.failure()) return tl::unexpected(*pack.failure());
  return packed;
}

}  // namespace tandem::gpu::host

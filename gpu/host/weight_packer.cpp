#include "gpu/host/weight_packer.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "config/limits.hpp"
#include "gpu/host/attention.hpp"

namespace tandem::gpu::host {
namespace {

using tensor = model::tensor;

/// Query, key and value biases as one vector; a missing part of a present whole is zero.
std::vector<float> stacked_bias(const model::layer& layer, const model_shape& shape) {
  std::vector<float> all;
  if (layer.query_bias == nullptr && layer.key_bias == nullptr && layer.value_bias == nullptr) return all;
  const std::pair<const tensor*, std::int32_t> parts[] = {{layer.query_bias, shape.query_width()},
                                                          {layer.key_bias, shape.kv_width()},
                                                          {layer.value_bias, shape.kv_width()}};
  for (const auto& [bias, width] : parts) {
    std::vector<float> values = vector_of(bias);
    values.resize(static_cast<std::size_t>(width), 0.0F);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

packed_matrix weight_packer::pack(std::initializer_list<const tensor*> parts) {
  if (failed_) return {};
  auto packed = packed_matrix::pack({parts.begin(), parts.size()}, how_, set_, parallel());
  if (!packed) {
    failed_ = std::move(packed.error());
    return {};
  }
  for (const tensor* part : parts) done_ += part->data.size();
  if (on_progress_ && total_ > 0) on_progress_(std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)));
  return std::move(*packed);
}

packed_matrix::parallel_for weight_packer::parallel() {
  return [this](std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) {
    team_.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) { body(begin, end); });
  };
}

std::vector<float> vector_of(const tensor* weight) {
  std::vector<float> values;
  if (weight == nullptr) return values;
  values.resize(static_cast<std::size_t>(weight->rows * weight->columns));
  for (std::int64_t row = 0; row < weight->rows; ++row)
    model::dequantize_row(*weight, row, values.data() + row * weight->columns);
  return values;
}

model_shape shape_of(const model::description& from) {
  return {from.vocabulary_size, from.hidden_size, from.intermediate_size, from.heads,
          from.kv_heads,        from.head_dim,    from.norm_epsilon};
}

result<void> check_shape(const model_shape& shape, const model::description& from) {
  if (shape.head_dim > kMaxHeadDim)
    return fail(error_code::unsupported, "The model's attention heads have " + std::to_string(shape.head_dim) +
                                             " channels; at most " + std::to_string(kMaxHeadDim) + " are supported.");
  if (shape.heads <= 0 || shape.kv_heads <= 0 || shape.heads % shape.kv_heads != 0)
    return fail(error_code::corrupt, "The model's " + std::to_string(shape.heads) + " query heads cannot share " +
                                         std::to_string(shape.kv_heads) + " key/value heads evenly.");
  if (from.rope.dimensions > shape.head_dim || from.rope.dimensions % 2 != 0)
    return fail(error_code::corrupt, "The model rotates " + std::to_string(from.rope.dimensions) +
                                         " channels of heads that have " + std::to_string(shape.head_dim) + ".");
  return {};
}

packed_layer pack_layer(const model::layer& from, const model_shape& shape, weight_packer& pack) {
  packed_layer layer;
  layer.attention_norm = vector_of(from.attention_norm);
  layer.query_key_value = pack.pack({from.query, from.key, from.value});
  layer.query_key_value_bias = stacked_bias(from, shape);
  layer.query_norm = vector_of(from.query_norm);
  layer.key_norm = vector_of(from.key_norm);
  layer.output = pack.pack({from.output});
  layer.output_bias = vector_of(from.output_bias);
  layer.mlp_norm = vector_of(from.mlp_norm);
  layer.gate_up = pack.pack({from.gate, from.up});
  layer.down = pack.pack({from.down});
  return layer;
}

packing packing_for(const model_shape& shape, packing asked) {
  if (shape.hidden >= limits::kPreciseBelowHidden) return asked;
  if (asked == packing::native) return packing::native_precise;
  return asked == packing::int8 ? packing::int8_precise : asked;
}

}  // namespace tandem::gpu::host

#include "gpu/host/packed_model.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "gpu/host/attention.hpp"

namespace tandem::gpu::host {
namespace {

using tensor = model::tensor;

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

/// Packs matrices one after the other; the first failure sticks.
class packer {
 public:
  packer(const model::model& source, packing how, isa set, compute_team& team,
         const std::function<void(double)>& on_progress)
      : how_(how), set_(set), team_(team), on_progress_(on_progress) {
    for (const tensor& each : source.tensors()) total_ += each.data.size();
  }

  packed_matrix pack(std::initializer_list<const tensor*> parts) {
    if (failed_) return {};
    auto packed = packed_matrix::pack({parts.begin(), parts.size()}, how_, set_, parallel());
    if (!packed) {
      failed_ = std::move(packed.error());
      return {};
    }
    for (const tensor* part : parts) done_ += part->data.size();
    if (on_progress_ && total_ > 0)
      on_progress_(std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)));
    return std::move(*packed);
  }

  const std::optional<error>& failure() const { return failed_; }

 private:
  packed_matrix::parallel_for parallel() {
    return [this](std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) {
      team_.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) { body(begin, end); });
    };
  }

  packing how_;
  isa set_;
  compute_team& team_;
  const std::function<void(double)>& on_progress_;
  std::size_t total_ = 0;
  std::size_t done_ = 0;
  std::optional<error> failed_;
};

packed_layer pack_layer(const model::layer& from, const model_shape& shape, packer& pack) {
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

/// Rounding activations to int8 shows in narrow models: docs/decisions/0006, 0011.
packing packing_for(const model_shape& shape, packing asked) {
  if (shape.hidden >= limits::kPreciseBelowHidden) return asked;
  if (asked == packing::native) return packing::native_precise;
  return asked == packing::int8 ? packing::int8_precise : asked;
}

}  // namespace

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
  packer pack(source, packing_for(packed.shape, how), set, team, on_progress);
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

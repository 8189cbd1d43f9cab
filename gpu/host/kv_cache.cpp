#include "gpu/host/kv_cache.hpp"

#include <cstring>
#include <type_traits>

#include "core/assert.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::uint64_t kOverread = kLanes * sizeof(float);

std::int32_t to_lanes(std::int32_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

std::int64_t key_elements(const kv_shape& shape) {
  return std::int64_t{shape.kv_heads} * shape.head_dim * to_lanes(shape.block_size);
}

std::int64_t page_elements(const kv_shape& shape) {
  return key_elements(shape) + std::int64_t{shape.kv_heads} * shape.block_size * to_lanes(shape.head_dim);
}

std::uint64_t element_bytes(const kv_shape& shape) {
  return shape.bf16 ? sizeof(std::uint16_t) : sizeof(float);
}

void put(float* to, float value) {
  *to = value;
}

/// Rounds to nearest, ties to even. A NaN stays one.
void put(std::uint16_t* to, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const std::uint32_t rounded = bits + 0x7FFFu + (bits >> 16 & 1u);
  *to = static_cast<std::uint16_t>(is_nan ? (bits >> 16 | 0x40u) : rounded >> 16);
}

}  // namespace

std::uint64_t kv_cache::block_bytes(const kv_shape& shape) {
  return static_cast<std::uint64_t>(page_elements(shape)) * static_cast<std::uint64_t>(shape.layers) *
         element_bytes(shape);
}

result<kv_cache> kv_cache::make(const kv_shape& shape) {
  TANDEM_ASSERT(shape.layers > 0 && shape.kv_heads > 0 && shape.head_dim > 0 && shape.block_size > 0 &&
                shape.blocks > 0);
  auto memory = page_memory::map(block_bytes(shape) * static_cast<std::uint64_t>(shape.blocks) + kOverread);
  if (!memory) return tl::unexpected(memory.error());
  return kv_cache(shape, std::move(*memory));
}

kv_layer_view kv_cache::layer(std::int32_t index) const {
  TANDEM_ASSERT(index >= 0 && index < shape_.layers);
  kv_layer_view view;
  view.page_elements = page_elements(shape_);
  view.pages = memory_.data() + static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(shape_.blocks) *
                                    static_cast<std::uint64_t>(view.page_elements) * element_bytes(shape_);
  view.values_offset = key_elements(shape_);
  view.key_stride = to_lanes(shape_.block_size);
  view.value_stride = to_lanes(shape_.head_dim);
  view.block_size = shape_.block_size;
  view.head_dim = shape_.head_dim;
  view.bf16 = shape_.bf16;
  return view;
}

void kv_cache::store(std::int32_t layer_index, block_id block, std::int32_t offset, std::int32_t kv_head,
                     const float* key, const float* value) {
  TANDEM_ASSERT(block >= 0 && block < shape_.blocks && offset >= 0 && offset < shape_.block_size);
  TANDEM_ASSERT(kv_head >= 0 && kv_head < shape_.kv_heads);
  const kv_layer_view view = layer(layer_index);
  const auto write = [&](auto* pages) {
    auto* page = pages + block * view.page_elements;
    auto* keys = page + std::int64_t{kv_head} * view.head_dim * view.key_stride + offset;
    auto* values = page + view.values_offset + (std::int64_t{kv_head} * view.block_size + offset) * view.value_stride;
    for (std::int32_t i = 0; i < view.head_dim; ++i) put(keys + std::int64_t{i} * view.key_stride, key[i]);
    for (std::int32_t i = 0; i < view.head_dim; ++i) put(values + i, value[i]);
  };
  auto* pages = const_cast<std::byte*>(view.pages);
  if (view.bf16) return write(reinterpret_cast<std::uint16_t*>(pages));
  write(reinterpret_cast<float*>(pages));
}

}  // namespace tandem::gpu::host

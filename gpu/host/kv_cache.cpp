#include "gpu/host/kv_cache.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "gpu/host/bf16.hpp"
#include "gpu/host/quantised_vector.hpp"

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

std::int64_t element_bytes(kv_format format) {
  switch (format) {
    case kv_format::int8:
      return sizeof(std::int8_t);
    case kv_format::bf16:
      return sizeof(std::uint16_t);
    case kv_format::fp32:
      break;
  }
  return sizeof(float);
}

std::int64_t scale_bytes(const kv_shape& shape) {
  if (shape.format != kv_format::int8) return 0;
  return std::int64_t{shape.kv_heads} * 2 * to_lanes(shape.block_size) * std::int64_t{sizeof(float)};
}

std::int64_t page_bytes(const kv_shape& shape) {
  return page_elements(shape) * element_bytes(shape.format) + scale_bytes(shape);
}

void put(float* to, float value) {
  *to = value;
}
void put(std::uint16_t* to, float value) {
  *to = float_to_bf16(value);
}

/// Where one token's key and value of one head lie in its page; a key's channels are key_stride apart.
template <class Element>
struct token_place {
  Element* key;
  Element* value;
};

template <class Element>
token_place<Element> place_in(std::byte* page, const kv_layer_view& view, std::int32_t offset, std::int32_t kv_head) {
  auto* elements = reinterpret_cast<Element*>(page);
  return {elements + std::int64_t{kv_head} * view.head_dim * view.key_stride + offset,
          elements + view.values_offset + (std::int64_t{kv_head} * view.block_size + offset) * view.value_stride};
}

template <class Element>
void put_token(const token_place<Element>& place, const kv_layer_view& view, const float* key, const float* value) {
  for (std::int32_t i = 0; i < view.head_dim; ++i) put(place.key + std::int64_t{i} * view.key_stride, key[i]);
  for (std::int32_t i = 0; i < view.head_dim; ++i) put(place.value + i, value[i]);
}

void put_quantised(std::byte* page, const kv_layer_view& view, std::int32_t offset, std::int32_t kv_head,
                   const float* key, const float* value) {
  const auto place = place_in<std::int8_t>(page, view, offset, kv_head);
  auto* scales =
      reinterpret_cast<float*>(page + view.scales_offset) + std::int64_t{kv_head} * 2 * view.key_stride + offset;
  scales[0] = quantise_vector(key, view.head_dim, place.key, view.key_stride);
  scales[view.key_stride] = quantise_vector(value, view.head_dim, place.value, 1);
}

}  // namespace

std::uint64_t kv_cache::block_bytes(const kv_shape& shape) {
  return static_cast<std::uint64_t>(page_bytes(shape)) * static_cast<std::uint64_t>(shape.layers);
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
  view.page_bytes = page_bytes(shape_);
  view.pages = memory_.data() + std::int64_t{index} * shape_.blocks * view.page_bytes;
  view.values_offset = key_elements(shape_);
  view.scales_offset = page_elements(shape_) * element_bytes(shape_.format);
  view.key_stride = to_lanes(shape_.block_size);
  view.value_stride = to_lanes(shape_.head_dim);
  view.block_size = shape_.block_size;
  view.head_dim = shape_.head_dim;
  view.format = shape_.format;
  return view;
}

void kv_cache::copy(std::int32_t layer_index, block_id from, block_id to) {
  TANDEM_ASSERT(from >= 0 && from < shape_.blocks && to >= 0 && to < shape_.blocks && from != to);
  const kv_layer_view view = layer(layer_index);
  auto* pages = const_cast<std::byte*>(view.pages);
  std::copy_n(pages + from * view.page_bytes, view.page_bytes, pages + to * view.page_bytes);
}

void kv_cache::store(std::int32_t layer_index, block_id block, std::int32_t offset, std::int32_t kv_head,
                     const float* key, const float* value) {
  TANDEM_ASSERT(block >= 0 && block < shape_.blocks && offset >= 0 && offset < shape_.block_size);
  TANDEM_ASSERT(kv_head >= 0 && kv_head < shape_.kv_heads);
  const kv_layer_view view = layer(layer_index);
  std::byte* page = const_cast<std::byte*>(view.pages) + block * view.page_bytes;
  switch (view.format) {
    case kv_format::int8:
      return put_quantised(page, view, offset, kv_head, key, value);
    case kv_format::bf16:
      return put_token(place_in<std::uint16_t>(page, view, offset, kv_head), view, key, value);
    case kv_format::fp32:
      return put_token(place_in<float>(page, view, offset, kv_head), view, key, value);
  }
}

}  // namespace tandem::gpu::host

#pragma once
/// Paged keys and values of one model. Owner: the model's executor; pages are addressed by the scheduler's block ids,
/// the same for target and draft (twins).

#include <cstddef>
#include <cstdint>

#include "core/ids.hpp"
#include "core/result.hpp"
#include "gpu/host/host_resources.hpp"

namespace tandem::gpu::host {

/// How a number of a key or value is stored. int8: as q · scale, with one fp32 scale per token and head for the key and
/// one for the value.
enum class kv_format : std::uint8_t { fp32, bf16, int8 };

struct kv_shape {
  std::int32_t layers = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t block_size = 0;  ///< tokens
  std::int32_t blocks = 0;
  kv_format format = kv_format::fp32;
};

/// One layer's pages as attention reads them. A page is one block: first the keys, per head head_dim × key_stride (a
/// lane is a token, so that scores need no sum across lanes), then the values, per head block_size × value_stride, then
/// for int8 the fp32 scales, per head key_stride of the keys and key_stride of the values. Strides are rounded up to 16
/// elements; 16 floats past a page may be read.
struct kv_layer_view {
  const std::byte* pages = nullptr;
  std::int64_t page_bytes = 0;
  std::int64_t values_offset = 0;  ///< elements from the page's start
  std::int64_t scales_offset = 0;  ///< bytes from the page's start; int8 only
  std::int32_t key_stride = 0;
  std::int32_t value_stride = 0;
  std::int32_t block_size = 0;
  std::int32_t head_dim = 0;
  kv_format format = kv_format::fp32;
};

class kv_cache {
 public:
  /// Bytes one block takes in all layers.
  static std::uint64_t block_bytes(const kv_shape& shape);
  /// Error: io, when the memory cannot be had.
  static result<kv_cache> make(const kv_shape& shape);

  const kv_shape& shape() const { return shape_; }
  kv_layer_view layer(std::int32_t index) const;

  /// Stores one token's key and value (head_dim each) of one head, rounded to the stored format (to nearest, ties to
  /// even). int8: see quantised_vector.hpp. Different (block, offset) pairs may be stored by different threads at once.
  void store(std::int32_t layer, block_id block, std::int32_t offset, std::int32_t kv_head, const float* key,
             const float* value);
  /// Everything one block holds, in one layer, over what another one held. Different `to` may be written by different
  /// threads at once.
  void copy(std::int32_t layer, block_id from, block_id to);

 private:
  kv_cache(const kv_shape& shape, page_memory memory) : shape_(shape), memory_(std::move(memory)) {}

  kv_shape shape_;
  page_memory memory_;
};

}  // namespace tandem::gpu::host

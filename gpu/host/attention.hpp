#pragma once
/// Causal attention of rows of one sequence over its paged keys and values, for the query heads of one key/value head.

#include <cstdint>

#include "config/limits.hpp"
#include "core/ids.hpp"
#include "gpu/host/kv_cache.hpp"
#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {

/// Queries that share one pass over keys and values.
inline constexpr std::int32_t kAttentionQueries = 8;
inline constexpr std::int32_t kMaxHeadDim = 512;

/// One head group of consecutive rows. Query of (row r, head h) is at queries + r·query_stride + h·head_dim; its result
/// at out + r·out_stride + h·head_dim. Row r stands at position first_position + r and sees positions 0 … its own.
struct attention_task {
  kv_layer_view cache;
  const block_id* table = nullptr;  ///< block of positions [i·block_size, …)
  std::int32_t kv_head = 0;
  std::int32_t group = 1;  ///< query heads that share the key/value head
  std::int32_t rows = 0;
  std::int32_t first_position = 0;
  const float* queries = nullptr;
  std::int64_t query_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  float scale = 1.0F;  ///< on the scores
};

/// computes: softmax(q·Kᵀ·scale)·V per query. shapes: attention_task. mapping: one call per (rows of one sequence, kv
/// head); inside, tiles of kAttentionQueries queries; scores with one token per lane, values with one channel per lane.
/// requires: head_dim ≤ kMaxHeadDim. cost: K and V are read once per tile. accuracy: fp32 with online softmax over
/// partitions of limits::kAttentionPartition absolute positions, merged ascending; the operations on one query depend
/// on its position alone, so its bits do not depend on the other rows of the call. tested by:
/// tests/gpu/attention_test.cpp.
using attention_function = void (*)(const attention_task&);

void attend_portable(const attention_task& task);
#if defined(__x86_64__)
void attend_avx2(const attention_task& task);
void attend_avx512(const attention_task& task);
#endif
attention_function attention_for(isa set);

}  // namespace tandem::gpu::host

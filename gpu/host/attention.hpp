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

/// Floats of one query's result over one partition: Σ p·v (value_stride), then the largest score and Σ p.
constexpr std::int32_t partial_floats(std::int32_t value_stride) {
  return value_stride + 16;
}

/// Partitions that a row at `position` sees.
constexpr std::int32_t partitions_seen(std::int32_t position) {
  return position / limits::kAttentionPartition + 1;
}

/// One head group of consecutive rows. Query of (row r, head h) is at queries + r·query_stride + h·head_dim; its result
/// at out + r·out_stride + h·head_dim. Row r stands at position first_position + r and sees positions
/// unseen_positions … its own.
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
  /// Leading positions that no row sees, fewer than limits::kAttentionPartition and than first_position + 1; what their
  /// pages hold must be finite.
  std::int32_t unseen_positions = 0;

  /// Of a task that is cut over several calls: partition p of query i = r·group + h at
  /// partials + (i·partial_partitions + p)·partial_floats. Null: the whole task in one call.
  float* partials = nullptr;
  std::int32_t partial_partitions = 0;  ///< that the last row sees
};

/// computes: softmax(q·Kᵀ·scale)·V per query. shapes: attention_task. mapping: attend() in one call per (rows of one
/// sequence, kv head), or attend_partitions() in several calls that together cover all partitions, then
/// merge_partials(); inside, tiles of kAttentionQueries queries; scores with one token per lane, values with one
/// channel per lane; bf16 with AMX: see attention_tiles.hpp. requires: head_dim ≤ kMaxHeadDim. cost: K and V are read
/// once per tile. accuracy: fp32 (bf16 with AMX: queries and weights rounded to bf16) with
/// softmax over partitions of limits::kAttentionPartition absolute positions, each with its own largest score, merged
/// one by one, ascending, in both ways with the same operations; the operations on one query depend on its position
/// alone, so its bits depend neither on the other rows nor on the cut. tested by: tests/gpu/attention_test.cpp.
struct attention_kernels {
  void (*attend)(const attention_task& task);
  /// Partitions [first, end) of every row that sees them, into task.partials.
  void (*attend_partitions)(const attention_task& task, std::int32_t first, std::int32_t end);
  /// task.out from task.partials.
  void (*merge_partials)(const attention_task& task);
};

const attention_kernels& attention_portable();
#if defined(__x86_64__)
const attention_kernels& attention_avx2();
const attention_kernels& attention_avx512();
/// bf16 keys and values with AMX (attention_tiles.hpp), everything else as with AVX-512.
const attention_kernels& attention_amx();
#endif
const attention_kernels& attention_for(isa set);

}  // namespace tandem::gpu::host

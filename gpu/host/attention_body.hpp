#pragma once
/// Body of the attention kernels; included by attention_<isa>.cpp only, each compiled with its own flags. See
/// attention.hpp.

#include "gpu/host/attention_scores.hpp"
#include "gpu/host/attention_values.hpp"

namespace tandem::gpu::host {
namespace {

TANDEM_INLINE float power_of(float x) {
  float lane[kLanes];
  store16(lane, exponential(splat(x)));
  return lane[0];
}

/// Softmax of one query so far.
struct running_softmax {
  float largest = 0.0F;
  float total = 0.0F;
  alignas(64) float sums[kMaxHeadDim];
};

/// Merges one partition; `first`: there was none before. Never inlined: the one place where partitions come together.
[[gnu::noinline]] void merge(running_softmax& softmax, bool first, const float* partial, std::int32_t stride,
                             float largest, float total) {
  if (first) {
    softmax.largest = largest;
    softmax.total = total;
    for (std::int32_t d = 0; d < stride; d += kLanes) store16(softmax.sums + d, load16(partial + d));
    return;
  }
  const float top = largest > softmax.largest ? largest : softmax.largest;
  const float keep = power_of(softmax.largest - top);
  const float take = power_of(largest - top);
  softmax.largest = top;
  softmax.total = softmax.total * keep + total * take;
  for (std::int32_t d = 0; d < stride; d += kLanes)
    store16(softmax.sums + d, load16(softmax.sums + d) * splat(keep) + load16(partial + d) * splat(take));
}

/// The result of query i = row · group + head.
void store_result(const attention_task& task, std::int32_t query, const running_softmax& softmax) {
  const std::int32_t head_dim = task.cache.head_dim;
  float* out = task.out + query / task.group * task.out_stride + std::int64_t{query % task.group} * head_dim;
  const float scale = 1.0F / softmax.total;
  for (std::int32_t d = 0; d < head_dim; ++d) out[d] = softmax.sums[d] * scale;
}

/// Queries [first, first + tile.count) of the task, counted row by row.
void load_tile(const attention_task& task, std::int32_t first, query_tile& tile) {
  const std::int32_t head_dim = task.cache.head_dim;
  const std::int32_t left = task.rows * task.group - first;
  tile.count = left < kAttentionQueries ? left : kAttentionQueries;
  for (std::int32_t q = 0; q < tile.count; ++q) {
    const std::int32_t row = (first + q) / task.group;
    const std::int32_t head = (first + q) % task.group;
    const float* from = task.queries + row * task.query_stride + std::int64_t{head} * head_dim;
    for (std::int32_t d = 0; d < head_dim; ++d) tile.query[q * head_dim + d] = from[d] * task.scale;
    tile.visible[q] = task.first_position + row + 1;
  }
}

template <class Element>
void attend_partition(const attention_task& task, query_tile& tile, std::int32_t begin) {
  const std::int32_t end = begin + seen(tile, tile.count - 1, begin);
  score_partition<Element>(task, tile, begin, end);
  if (begin == 0 && task.unseen_positions > 0) hide(tile, task.unseen_positions);
  if constexpr (kScaled<Element>) gather_value_scales(task, tile, begin, end);
  for (std::int32_t q = 0; q < tile.count; ++q)
    if (seen(tile, q, begin) > 0) exponentiate<Element>(tile, q, seen(tile, q, begin));
  weigh_partition<Element>(task, tile, begin);
}

void attend_partition(const attention_task& task, query_tile& tile, std::int32_t begin) {
  switch (task.cache.format) {
    case kv_format::int8:
      return attend_partition<std::int8_t>(task, tile, begin);
    case kv_format::bf16:
      return attend_partition<std::uint16_t>(task, tile, begin);
    case kv_format::fp32:
      return attend_partition<float>(task, tile, begin);
  }
}

void attend(const attention_task& task) {
  const std::int32_t stride = task.cache.value_stride;
  query_tile tile;
  running_softmax softmax[kAttentionQueries];
  for (std::int32_t first = 0; first < task.rows * task.group; first += kAttentionQueries) {
    load_tile(task, first, tile);
    for (std::int32_t begin = 0; begin < tile.visible[tile.count - 1]; begin += kPartition) {
      attend_partition(task, tile, begin);
      for (std::int32_t q = 0; q < tile.count; ++q)
        if (seen(tile, q, begin) > 0)
          merge(softmax[q], begin == 0, tile.partial + q * stride, stride, tile.largest[q], tile.total[q]);
    }
    for (std::int32_t q = 0; q < tile.count; ++q) store_result(task, first + q, softmax[q]);
  }
}

TANDEM_INLINE float* partial_of(const attention_task& task, std::int32_t query, std::int32_t partition) {
  return task.partials +
         (std::int64_t{query} * task.partial_partitions + partition) * partial_floats(task.cache.value_stride);
}

void attend_partitions(const attention_task& task, std::int32_t first_partition, std::int32_t end_partition) {
  const std::int32_t stride = task.cache.value_stride;
  query_tile tile;
  for (std::int32_t first = 0; first < task.rows * task.group; first += kAttentionQueries) {
    load_tile(task, first, tile);
    for (std::int32_t partition = first_partition; partition < end_partition; ++partition) {
      const std::int32_t begin = partition * kPartition;
      if (seen(tile, tile.count - 1, begin) <= 0) break;
      attend_partition(task, tile, begin);
      for (std::int32_t q = 0; q < tile.count; ++q) {
        if (seen(tile, q, begin) <= 0) continue;
        float* to = partial_of(task, first + q, partition);
        for (std::int32_t d = 0; d < stride; d += kLanes) store16(to + d, load16(tile.partial + q * stride + d));
        to[stride] = tile.largest[q];
        to[stride + 1] = tile.total[q];
      }
    }
  }
}

void merge_partials(const attention_task& task) {
  const std::int32_t stride = task.cache.value_stride;
  running_softmax softmax;
  for (std::int32_t query = 0; query < task.rows * task.group; ++query) {
    const std::int32_t partitions = partitions_seen(task.first_position + query / task.group);
    for (std::int32_t partition = 0; partition < partitions; ++partition) {
      const float* from = partial_of(task, query, partition);
      merge(softmax, partition == 0, from, stride, from[stride], from[stride + 1]);
    }
    store_result(task, query, softmax);
  }
}

constexpr attention_kernels kAttention{attend, attend_partitions, merge_partials};

}  // namespace
}  // namespace tandem::gpu::host

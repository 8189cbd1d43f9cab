#pragma once
/// Values of one partition, weighed with a tile's exponentials. Included by attention_body.hpp only, once per
/// instruction set.

#include "gpu/host/attention_tile.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kValueQueries = kWideRegisters ? kAttentionQueries : 4;  // that walk over the values together

/// Vectors of channels whose sums are held in registers while values stream by.
constexpr std::int32_t value_vectors(std::int32_t queries) {
  if (kWideRegisters) return queries == 1 ? 8 : queries <= 4 ? 4 : 2;
  return queries <= 2 ? 2 : 1;
}

/// partial[q] += Σ over positions [begin, end) of score · value, for Queries queries and Vectors·16 channels from
/// `channel` on, tokens ascending. scores[0] is that of `begin`.
template <int Queries, int Vectors, class Element>
TANDEM_INLINE void weigh_channels(const attention_task& task, std::int32_t begin, std::int32_t end,
                                  std::int32_t channel, const float* scores, float* partial) {
  const std::int32_t stride = task.cache.value_stride;
  v16 sum[Queries][Vectors];
  for (int q = 0; q < Queries; ++q)
    for (int v = 0; v < Vectors; ++v) sum[q][v] = load16(partial + q * stride + channel + v * kLanes);
  run_walk walk(task, begin, end);
  while (walk.left > 0) {
    const float* weights = scores + (end - begin - walk.left);
    const token_run run = walk.next(kPartition);
    const Element* values = values_of<Element>(task, run) + channel;
    for (std::int32_t token = 0; token < run.count; ++token) {
      v16 value[Vectors];
      for (int v = 0; v < Vectors; ++v) value[v] = load16(values + std::int64_t{token} * stride + v * kLanes);
      for (int q = 0; q < Queries; ++q) {
        const v16 weight = splat(weights[q * kScoreStride + token]);
        for (int v = 0; v < Vectors; ++v) sum[q][v] = multiply_add(weight, value[v], sum[q][v]);
      }
    }
  }
  for (int q = 0; q < Queries; ++q)
    for (int v = 0; v < Vectors; ++v) store16(partial + q * stride + channel + v * kLanes, sum[q][v]);
}

/// Asks for the keys of positions [begin, end), as far as the task reaches.
template <class Element>
TANDEM_INLINE void prefetch_keys(const attention_task& task, std::int32_t begin, std::int32_t end) {
  const std::int32_t last = task.first_position + task.rows;
  run_walk walk(task, begin, end < last ? end : last);
  while (walk.left > 0) {
    const token_run run = walk.next(kPartition);
    const auto* keys = reinterpret_cast<const std::byte*>(keys_of<Element>(task, run));
    const std::int64_t bytes = std::int64_t{run.count} * task.cache.head_dim * std::int64_t{sizeof(Element)};
    for (std::int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(keys + at, 0, 2);
  }
}

/// Positions [begin, end), which queries [first, first + Queries) all see.
template <int Queries, class Element>
void weigh_positions(const attention_task& task, query_tile& tile, std::int32_t first, std::int32_t partition,
                     std::int32_t begin, std::int32_t end) {
  constexpr std::int32_t kVectors = value_vectors(Queries);
  const std::int32_t stride = task.cache.value_stride;
  const float* scores = tile.scores + first * kScoreStride + (begin - partition);
  float* partial = tile.partial + first * stride;
  if (Queries <= kPrefetchedQueries) prefetch_keys<Element>(task, begin + kPartition, end + kPartition);
  std::int32_t channel = 0;
  for (; channel + kVectors * kLanes <= stride; channel += kVectors * kLanes)
    weigh_channels<Queries, kVectors, Element>(task, begin, end, channel, scores, partial);
  if constexpr (kVectors > 4)
    for (; channel + 4 * kLanes <= stride; channel += 4 * kLanes)
      weigh_channels<Queries, 4, Element>(task, begin, end, channel, scores, partial);
  for (; channel < stride; channel += kLanes)
    weigh_channels<Queries, 1, Element>(task, begin, end, channel, scores, partial);
}

/// The queries walk together as far as the first sees, then each on its own.
template <int Queries, class Element>
void weigh_group(const attention_task& task, query_tile& tile, std::int32_t first, std::int32_t begin) {
  const std::int32_t shortest = seen(tile, first, begin);
  const std::int32_t common = shortest > 0 ? shortest : 0;
  if (common > 0) weigh_positions<Queries, Element>(task, tile, first, begin, begin, begin + common);
  for (std::int32_t q = first; q < first + Queries; ++q) {
    const std::int32_t own = seen(tile, q, begin);
    if (own > common) weigh_positions<1, Element>(task, tile, q, begin, begin + common, begin + own);
  }
}

template <int Queries, class Element>
void weigh_rest(const attention_task& task, query_tile& tile, std::int32_t first, std::int32_t begin) {
  if (tile.count - first == Queries) return weigh_group<Queries, Element>(task, tile, first, begin);
  if constexpr (Queries > 1) weigh_rest<Queries - 1, Element>(task, tile, first, begin);
}

/// tile.partial of all queries. Those that see nothing of the partition get 0.
template <class Element>
void weigh_partition(const attention_task& task, query_tile& tile, std::int32_t begin) {
  for (std::int32_t i = 0; i < tile.count * task.cache.value_stride; ++i) tile.partial[i] = 0.0F;
  std::int32_t q = 0;
  for (; q + kValueQueries <= tile.count; q += kValueQueries) weigh_group<kValueQueries, Element>(task, tile, q, begin);
  if (q < tile.count) weigh_rest<kValueQueries, Element>(task, tile, q, begin);
}

}  // namespace
}  // namespace tandem::gpu::host

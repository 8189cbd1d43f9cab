#pragma once
/// Scores of a tile's queries with the keys of one partition, and their exponentials. Included by attention_body.hpp
/// only, once per instruction set.

#include "gpu/host/attention_tile.hpp"

namespace tandem::gpu::host {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();
constexpr std::int32_t kScoreQueries = kWideRegisters ? kAttentionQueries : 4;

/// Runs that are scored together: enough sums to hide the latency of an addition, as few as registers hold.
constexpr std::int32_t runs_together(std::int32_t queries) {
  if (kWideRegisters) return queries <= 4 ? 4 : 2;
  return queries <= 2 ? 2 : 1;
}

/// Scores of Runs runs of up to 16 tokens (the caller overwrites or ignores lanes behind a run's end) for Queries
/// queries; channels ascending.
template <int Queries, int Runs, class Element>
TANDEM_INLINE void score_runs(const attention_task& task, const float* query, const token_run* runs,
                              float* const* scores) {
  const std::int32_t head_dim = task.cache.head_dim;
  const Element* keys[Runs];
  const Element* values[Runs];
  v16 sum[Queries][Runs];
  for (int r = 0; r < Runs; ++r) {
    keys[r] = keys_of<Element>(task, runs[r]);
    values[r] = values_of<Element>(task, runs[r]);
    for (int q = 0; q < Queries; ++q) sum[q][r] = splat(0.0F);
  }
  for (std::int32_t d = 0; d < head_dim; ++d) {
    if (Queries <= kPrefetchedQueries && d % (kLineBytes / kLanes / sizeof(Element)) == 0)
      for (int r = 0; r < Runs; ++r) __builtin_prefetch(values[r] + std::int64_t{d} * kLanes, 0, 2);
    v16 key[Runs];
    for (int r = 0; r < Runs; ++r) key[r] = load16(keys[r] + std::int64_t{d} * task.cache.key_stride);
    for (int q = 0; q < Queries; ++q) {
      const v16 channel = splat(query[q * head_dim + d]);
      for (int r = 0; r < Runs; ++r) sum[q][r] = multiply_add(channel, key[r], sum[q][r]);
    }
  }
  for (int r = 0; r < Runs; ++r)
    for (int q = 0; q < Queries; ++q) {
      if constexpr (kScaled<Element>) sum[q][r] = sum[q][r] * load16(scales_of(task, runs[r]));
      store16(scores[r] + q * kScoreStride, sum[q][r]);
    }
}

template <int Queries, class Element>
void score_queries(const attention_task& task, query_tile& tile, std::int32_t first, std::int32_t begin,
                   std::int32_t end) {
  constexpr std::int32_t kRuns = runs_together(Queries);
  const float* query = tile.query + first * task.cache.head_dim;
  float* const to = tile.scores + first * kScoreStride;
  run_walk walk(task, begin, end);
  while (walk.left > 0) {
    token_run runs[kRuns];
    float* scores[kRuns];
    std::int32_t found = 0;
    for (; found < kRuns && walk.left > 0; ++found) {
      scores[found] = to + (end - begin - walk.left);
      runs[found] = walk.next(kLanes);
    }
    if (found == kRuns) {
      score_runs<Queries, kRuns, Element>(task, query, runs, scores);
      continue;
    }
    for (std::int32_t r = 0; r < found; ++r) score_runs<Queries, 1, Element>(task, query, runs + r, scores + r);
  }
}

template <int Queries, class Element>
void score_rest(const attention_task& task, query_tile& tile, std::int32_t first, std::int32_t begin,
                std::int32_t end) {
  if (tile.count - first == Queries) return score_queries<Queries, Element>(task, tile, first, begin, end);
  if constexpr (Queries > 1) score_rest<Queries - 1, Element>(task, tile, first, begin, end);
}

/// Scores of positions [begin, end) for all queries of the tile, whether they see them or not.
template <class Element>
void score_partition(const attention_task& task, query_tile& tile, std::int32_t begin, std::int32_t end) {
  std::int32_t first = 0;
  for (; first + kScoreQueries <= tile.count; first += kScoreQueries)
    score_queries<kScoreQueries, Element>(task, tile, first, begin, end);
  if (first < tile.count) score_rest<kScoreQueries, Element>(task, tile, first, begin, end);
}

/// The first `count` scores of the first partition weigh nothing.
void hide(query_tile& tile, std::int32_t count) {
  for (std::int32_t q = 0; q < tile.count; ++q)
    for (std::int32_t i = 0; i < count; ++i) tile.scores[q * kScoreStride + i] = kMinusInfinity;
}

/// Of positions [begin, end), one after the other.
TANDEM_INLINE void gather_value_scales(const attention_task& task, query_tile& tile, std::int32_t begin,
                                       std::int32_t end) {
  run_walk walk(task, begin, end);
  while (walk.left > 0) {
    float* to = tile.value_scales + (end - begin - walk.left);
    store16(to, load16(scales_of(task, walk.next(kLanes)) + task.cache.key_stride));
  }
}

/// Turns the partition's `count` scores of query q into exponentials, times the scale of the value for int8; keeps
/// their largest score and the sum of the exponentials.
template <class Element>
TANDEM_INLINE void exponentiate(query_tile& tile, std::int32_t q, std::int32_t count) {
  float* scores = tile.scores + q * kScoreStride;
  const std::int32_t padded = (count + kLanes - 1) / kLanes * kLanes;
  for (std::int32_t i = count; i < padded; ++i) scores[i] = kMinusInfinity;
  v16 top = load16(scores);
  for (std::int32_t i = kLanes; i < padded; i += kLanes) {
    const v16 next = load16(scores + i);
    top = choose_greater(next, top, next, top);
  }
  const float largest = max_lanes(top);
  v16 sum = splat(0.0F);
  for (std::int32_t i = 0; i < padded; i += kLanes) {
    v16 power = exponential(load16(scores + i) - splat(largest));
    sum += power;
    if constexpr (kScaled<Element>) power = power * load16(tile.value_scales + i);
    store16(scores + i, power);
  }
  tile.largest[q] = largest;
  tile.total[q] = sum_lanes(sum);
}

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// Body of attend(); included by attention_<isa>.cpp only, each compiled with its own flags. See attention.hpp.

#include "gpu/host/attention.hpp"
#include "gpu/host/vector16.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kPartition = limits::kAttentionPartition;
constexpr std::int32_t kScoreStride = kPartition + kLanes;  // a store of 16 scores may run over the partition's end
constexpr std::int32_t kValueQueries = 4;                   // queries × vectors held in registers while V streams by
constexpr std::int32_t kValueVectors = 4;
constexpr float kMinusInfinity = -__builtin_inff();

/// One tile of queries and its running softmax.
struct query_tile {
  std::int32_t count = 0;
  std::int32_t visible[kAttentionQueries] = {};  // positions the query sees; not descending within a tile
  float largest[kAttentionQueries] = {};
  float total[kAttentionQueries] = {};
  float* out[kAttentionQueries] = {};
  alignas(64) float query[kAttentionQueries * kMaxHeadDim];    // scaled; rows of head_dim
  alignas(64) float scores[kAttentionQueries * kScoreStride];  // of one partition, then exponentials
  alignas(64) float partial[kAttentionQueries * kMaxHeadDim];  // Σ p·v of one partition; rows of value_stride
  alignas(64) float sums[kAttentionQueries * kMaxHeadDim];     // of all partitions so far
};

/// Consecutive positions inside one block.
struct token_run {
  std::int64_t page = 0;    // element offset of the block's page
  std::int32_t offset = 0;  // first token in the block
  std::int32_t count = 0;
};

TANDEM_INLINE token_run run_at(const attention_task& task, std::int32_t position, std::int32_t end,
                               std::int32_t longest) {
  const std::int32_t offset = position % task.cache.block_size;
  std::int32_t count = task.cache.block_size - offset;
  if (count > end - position) count = end - position;
  if (count > longest) count = longest;
  return {task.table[position / task.cache.block_size] * task.cache.page_elements, offset, count};
}

/// Scores of 16 tokens (fewer are valid near an end: the caller overwrites or ignores the rest) for Queries queries.
template <int Queries, class Element>
void score_run(const Element* keys, std::int32_t key_stride, std::int32_t head_dim, const float* query, float* scores) {
  v16 sum[Queries];
  for (int q = 0; q < Queries; ++q) sum[q] = splat(0.0F);
  for (std::int32_t d = 0; d < head_dim; ++d) {
    const v16 key = load16(keys + std::int64_t{d} * key_stride);
    for (int q = 0; q < Queries; ++q) sum[q] = multiply_add(splat(query[q * head_dim + d]), key, sum[q]);
  }
  for (int q = 0; q < Queries; ++q) store16(scores + q * kScoreStride, sum[q]);
}

template <int Queries, class Element>
void score_partition(const attention_task& task, query_tile& tile, std::int32_t begin, std::int32_t end) {
  const auto* pages = reinterpret_cast<const Element*>(task.cache.pages);
  const std::int64_t head = std::int64_t{task.kv_head} * task.cache.head_dim * task.cache.key_stride;
  for (std::int32_t position = begin; position < end;) {
    const token_run run = run_at(task, position, end, kLanes);
    score_run<Queries>(pages + run.page + head + run.offset, task.cache.key_stride, task.cache.head_dim, tile.query,
                       tile.scores + (position - begin));
    position += run.count;
  }
}

template <class Element>
void score_partition(const attention_task& task, query_tile& tile, std::int32_t begin, std::int32_t end) {
  switch (tile.count) {
    case 1:
      return score_partition<1, Element>(task, tile, begin, end);
    case 2:
      return score_partition<2, Element>(task, tile, begin, end);
    case 3:
      return score_partition<3, Element>(task, tile, begin, end);
    case 4:
      return score_partition<4, Element>(task, tile, begin, end);
    case 5:
      return score_partition<5, Element>(task, tile, begin, end);
    case 6:
      return score_partition<6, Element>(task, tile, begin, end);
    case 7:
      return score_partition<7, Element>(task, tile, begin, end);
    default:
      return score_partition<8, Element>(task, tile, begin, end);
  }
}

/// partial[q] += Σ over `count` tokens of score · value, for Queries queries and Vectors·16 channels, tokens ascending.
template <int Queries, int Vectors, class Element>
TANDEM_INLINE void weigh_run(const Element* values, std::int32_t value_stride, std::int32_t count, const float* scores,
                             float* partial) {
  v16 sum[Queries][Vectors];
  for (int q = 0; q < Queries; ++q)
    for (int v = 0; v < Vectors; ++v) sum[q][v] = load16(partial + q * value_stride + v * kLanes);
  for (std::int32_t token = 0; token < count; ++token) {
    v16 value[Vectors];
    for (int v = 0; v < Vectors; ++v) value[v] = load16(values + std::int64_t{token} * value_stride + v * kLanes);
    for (int q = 0; q < Queries; ++q) {
      const v16 weight = splat(scores[q * kScoreStride + token]);
      for (int v = 0; v < Vectors; ++v) sum[q][v] = multiply_add(weight, value[v], sum[q][v]);
    }
  }
  for (int q = 0; q < Queries; ++q)
    for (int v = 0; v < Vectors; ++v) store16(partial + q * value_stride + v * kLanes, sum[q][v]);
}

template <int Queries, class Element>
void weigh_positions(const attention_task& task, query_tile& tile, std::int32_t first, std::int32_t partition,
                     std::int32_t begin, std::int32_t end) {
  const std::int32_t stride = task.cache.value_stride;
  const auto* pages = reinterpret_cast<const Element*>(task.cache.pages) + task.cache.values_offset +
                      std::int64_t{task.kv_head} * task.cache.block_size * stride;
  for (std::int32_t position = begin; position < end;) {
    const token_run run = run_at(task, position, end, kPartition);
    const Element* values = pages + run.page + std::int64_t{run.offset} * stride;
    const float* scores = tile.scores + first * kScoreStride + (position - partition);
    float* partial = tile.partial + first * stride;
    std::int32_t channel = 0;
    for (; channel + kValueVectors * kLanes <= stride; channel += kValueVectors * kLanes)
      weigh_run<Queries, kValueVectors>(values + channel, stride, run.count, scores, partial + channel);
    for (; channel < stride; channel += kLanes)
      weigh_run<Queries, 1>(values + channel, stride, run.count, scores, partial + channel);
    position += run.count;
  }
}

/// How many positions of the partition query q sees.
TANDEM_INLINE std::int32_t seen(const query_tile& tile, std::int32_t q, std::int32_t begin) {
  const std::int32_t count = tile.visible[q] - begin;
  return count > kPartition ? kPartition : count;
}

template <int Queries, class Element>
TANDEM_INLINE void weigh_group(const attention_task& task, query_tile& tile, std::int32_t first, std::int32_t begin) {
  const std::int32_t shortest = seen(tile, first, begin);
  const std::int32_t common = shortest > 0 ? shortest : 0;
  if (common > 0) weigh_positions<Queries, Element>(task, tile, first, begin, begin, begin + common);
  for (std::int32_t q = first; q < first + Queries; ++q) {
    const std::int32_t own = seen(tile, q, begin);
    if (own > common) weigh_positions<1, Element>(task, tile, q, begin, begin + common, begin + own);
  }
}

/// Up to four queries walk together as far as the shortest sees, then each on its own. Queries that see nothing here
/// are skipped.
template <class Element>
void weigh_partition(const attention_task& task, query_tile& tile, std::int32_t begin) {
  std::int32_t q = 0;
  for (; q + kValueQueries <= tile.count; q += kValueQueries) weigh_group<kValueQueries, Element>(task, tile, q, begin);
  switch (tile.count - q) {
    case 1:
      return weigh_group<1, Element>(task, tile, q, begin);
    case 2:
      return weigh_group<2, Element>(task, tile, q, begin);
    case 3:
      return weigh_group<3, Element>(task, tile, q, begin);
    default:
      return;
  }
}

/// Turns the partition's scores of query q into exponentials; gives their largest score and their sum.
TANDEM_INLINE void exponentiate(query_tile& tile, std::int32_t q, std::int32_t count, float& largest, float& total) {
  float* scores = tile.scores + q * kScoreStride;
  const std::int32_t padded = (count + kLanes - 1) / kLanes * kLanes;
  for (std::int32_t i = count; i < padded; ++i) scores[i] = kMinusInfinity;
  v16 top = load16(scores);
  for (std::int32_t i = kLanes; i < padded; i += kLanes) {
    const v16 next = load16(scores + i);
    top = choose(next > top, next, top);
  }
  largest = max_lanes(top);
  v16 sum = splat(0.0F);
  for (std::int32_t i = 0; i < padded; i += kLanes) {
    const v16 power = exponential(load16(scores + i) - splat(largest));
    store16(scores + i, power);
    sum += power;
  }
  total = sum_lanes(sum);
}

TANDEM_INLINE float power_of(float x) {
  float lane[kLanes];
  store16(lane, exponential(splat(x)));
  return lane[0];
}

/// Merges one partition into the running softmax of query q.
TANDEM_INLINE void merge(query_tile& tile, std::int32_t q, std::int32_t stride, bool first, float largest,
                         float total) {
  float* sums = tile.sums + q * stride;
  const float* partial = tile.partial + q * stride;
  if (first) {
    tile.largest[q] = largest;
    tile.total[q] = total;
    for (std::int32_t d = 0; d < stride; ++d) sums[d] = partial[d];
    return;
  }
  const float top = largest > tile.largest[q] ? largest : tile.largest[q];
  const float keep = power_of(tile.largest[q] - top);
  const float take = power_of(largest - top);
  tile.largest[q] = top;
  tile.total[q] = tile.total[q] * keep + total * take;
  for (std::int32_t d = 0; d < stride; ++d) sums[d] = sums[d] * keep + partial[d] * take;
}

template <class Element>
void attend_partition(const attention_task& task, query_tile& tile, std::int32_t begin) {
  const std::int32_t stride = task.cache.value_stride;
  const std::int32_t longest = seen(tile, tile.count - 1, begin);
  score_partition<Element>(task, tile, begin, begin + longest);
  float largest[kAttentionQueries];
  float total[kAttentionQueries];
  for (std::int32_t q = 0; q < tile.count; ++q)
    if (seen(tile, q, begin) > 0) exponentiate(tile, q, seen(tile, q, begin), largest[q], total[q]);
  for (std::int32_t i = 0; i < tile.count * stride; ++i) tile.partial[i] = 0.0F;
  weigh_partition<Element>(task, tile, begin);
  for (std::int32_t q = 0; q < tile.count; ++q)
    if (seen(tile, q, begin) > 0) merge(tile, q, stride, begin == 0, largest[q], total[q]);
}

/// Queries [first, first + tile.count) of the task, counted row by row.
void load_tile(const attention_task& task, std::int32_t first, query_tile& tile) {
  const std::int32_t head_dim = task.cache.head_dim;
  for (std::int32_t q = 0; q < tile.count; ++q) {
    const std::int32_t row = (first + q) / task.group;
    const std::int32_t head = (first + q) % task.group;
    const float* from = task.queries + row * task.query_stride + std::int64_t{head} * head_dim;
    for (std::int32_t d = 0; d < head_dim; ++d) tile.query[q * head_dim + d] = from[d] * task.scale;
    tile.visible[q] = task.first_position + row + 1;
    tile.out[q] = task.out + row * task.out_stride + std::int64_t{head} * head_dim;
  }
}

void store_tile(const attention_task& task, const query_tile& tile) {
  for (std::int32_t q = 0; q < tile.count; ++q) {
    const float scale = 1.0F / tile.total[q];
    for (std::int32_t d = 0; d < task.cache.head_dim; ++d)
      tile.out[q][d] = tile.sums[q * task.cache.value_stride + d] * scale;
  }
}

void attend(const attention_task& task) {
  query_tile tile;
  const std::int32_t queries = task.rows * task.group;
  for (std::int32_t first = 0; first < queries; first += kAttentionQueries) {
    tile.count = queries - first < kAttentionQueries ? queries - first : kAttentionQueries;
    load_tile(task, first, tile);
    for (std::int32_t begin = 0; begin < tile.visible[tile.count - 1]; begin += kPartition) {
      if (task.cache.bf16) {
        attend_partition<std::uint16_t>(task, tile, begin);
      } else {
        attend_partition<float>(task, tile, begin);
      }
    }
    store_tile(task, tile);
  }
}

}  // namespace
}  // namespace tandem::gpu::host

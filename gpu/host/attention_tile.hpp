#pragma once
/// What the parts of attention share: a tile of queries, and where runs of tokens lie. Included by attention_body.hpp
/// only, once per instruction set.

#include "gpu/host/attention.hpp"
#include "gpu/host/vector16.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kPartition = limits::kAttentionPartition;
constexpr std::int32_t kScoreStride = kPartition + kLanes;  // a store of 16 scores may run over the partition's end

/// Up to so many queries wait for memory rather than for arithmetic: they ask for values while they score keys, and for
/// the next partition's keys while they weigh values.
constexpr std::int32_t kPrefetchedQueries = 6;
constexpr std::int32_t kLineBytes = 64;

/// Accumulators live in registers: AVX-512 has 32 of 16 lanes, AVX2 16 of 8.
#if defined(__AVX512F__)
constexpr bool kWideRegisters = true;
#else
constexpr bool kWideRegisters = false;
#endif

/// int8 comes with a scale per token.
template <class Element>
constexpr bool kScaled = false;
template <>
constexpr bool kScaled<std::int8_t> = true;

/// One tile of queries and what is known of one partition.
struct query_tile {
  std::int32_t count = 0;
  std::int32_t visible[kAttentionQueries] = {};  // positions the query sees; not descending within a tile
  float largest[kAttentionQueries] = {};         // score in the partition
  float total[kAttentionQueries] = {};           // Σ p in the partition
  alignas(64) float query[kAttentionQueries * kMaxHeadDim];    // scaled; rows of head_dim
  alignas(64) float scores[kAttentionQueries * kScoreStride];  // of one partition, then what values are weighed with
  alignas(64) float value_scales[kScoreStride];                // of the partition's tokens
  alignas(64) float partial[kAttentionQueries * kMaxHeadDim];  // Σ p·v of one partition; rows of value_stride
};

/// Consecutive positions inside one block.
struct token_run {
  const std::byte* page = nullptr;
  std::int32_t offset = 0;  // first token in the block
  std::int32_t count = 0;
};

/// Runs of positions [begin, end), ascending, without a division per run.
struct run_walk {
  const attention_task& task;
  std::int32_t left;
  std::int32_t index;   // of the block in the table
  std::int32_t offset;  // in the block

  TANDEM_INLINE run_walk(const attention_task& of, std::int32_t begin, std::int32_t end)
      : task(of), left(end - begin), index(begin / of.cache.block_size), offset(begin - index * of.cache.block_size) {}

  TANDEM_INLINE token_run next(std::int32_t longest) {
    std::int32_t count = task.cache.block_size - offset;
    if (count > left) count = left;
    if (count > longest) count = longest;
    const token_run run{task.cache.pages + task.table[index] * task.cache.page_bytes, offset, count};
    left -= count;
    offset += count;
    if (offset == task.cache.block_size) {
      offset = 0;
      ++index;
    }
    return run;
  }
};

/// First channel of the run's first key; a channel further is key_stride elements on.
template <class Element>
TANDEM_INLINE const Element* keys_of(const attention_task& task, const token_run& run) {
  return reinterpret_cast<const Element*>(run.page) +
         std::int64_t{task.kv_head} * task.cache.head_dim * task.cache.key_stride + run.offset;
}

/// The run's first value; a token further is value_stride elements on.
template <class Element>
TANDEM_INLINE const Element* values_of(const attention_task& task, const token_run& run) {
  return reinterpret_cast<const Element*>(run.page) + task.cache.values_offset +
         (std::int64_t{task.kv_head} * task.cache.block_size + run.offset) * task.cache.value_stride;
}

/// Scales of the run's keys; those of its values are key_stride floats on.
TANDEM_INLINE const float* scales_of(const attention_task& task, const token_run& run) {
  return reinterpret_cast<const float*>(run.page + task.cache.scales_offset) +
         std::int64_t{task.kv_head} * 2 * task.cache.key_stride + run.offset;
}

/// How many positions of the partition query q sees; 0 or less when none.
TANDEM_INLINE std::int32_t seen(const query_tile& tile, std::int32_t q, std::int32_t begin) {
  const std::int32_t count = tile.visible[q] - begin;
  return count > kPartition ? kPartition : count;
}

}  // namespace
}  // namespace tandem::gpu::host

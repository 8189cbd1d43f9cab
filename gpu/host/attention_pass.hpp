#pragma once
/// What attention with AMX works on: up to 64 queries, and one partition's keys and values laid out for tiles. Included
/// by attention_tiles.hpp only, once per instruction set.
///
/// A right operand is 16 rows of 32 bf16 (64 bytes): two rows of 16 numbers, alternating. Of keys these are two
/// channels of 16 tokens, of values two tokens of 16 channels.

#include "gpu/host/attention_tile.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kTileQueries = 16;
constexpr std::int32_t kPassTiles = 4;  // as many sums as share a right operand
constexpr std::int32_t kPassQueries = kPassTiles * kTileQueries;
constexpr std::int32_t kMaxTiledHeadDim = 256;
constexpr std::int32_t kStepNumbers = 32;                       // that one tile instruction adds up
constexpr std::int32_t kOperand = kTileQueries * kStepNumbers;  // numbers of a tile
constexpr std::int32_t kPartitionSteps = kPartition / kStepNumbers;
// Rows an odd number of cache lines long spread over the sets of a cache.
constexpr std::int32_t kQueryStride = kMaxTiledHeadDim + kStepNumbers;
constexpr std::int32_t kWeightStride = kPartition + kStepNumbers;
constexpr std::int32_t kPartialStride = kMaxTiledHeadDim + kLanes;
constexpr std::int32_t kValueStride = kPartitionSteps * kOperand + kStepNumbers;  // from 16 channels to the next 16
static_assert(kPartition % kStepNumbers == 0 && kMaxTiledHeadDim % kStepNumbers == 0);

constexpr std::int32_t round_up(std::int32_t count, std::int32_t unit) {
  return (count + unit - 1) / unit * unit;
}

struct attention_pass {
  explicit attention_pass(const attention_task& task)
      : tile_queries(task.rows * task.group < kTileQueries ? task.rows * task.group : kTileQueries) {}

  const std::int32_t tile_queries;                               // queries of a tile: fewer, when the task has no more
  std::int32_t count = 0;                                        // queries
  std::int32_t visible[kPassQueries] = {};                       // positions the query sees; not descending
  float largest[kPassQueries] = {};                              // score in the partition
  float total[kPassQueries] = {};                                // Σ p in the partition
  alignas(64) std::uint16_t query[kPassQueries * kQueryStride];  // scaled; zeros behind head_dim
  alignas(64) float scores[kPassQueries * kScoreStride];         // of one partition
  alignas(64) std::uint16_t weights[kPassQueries * kWeightStride];  // p of one partition, 0 where nothing is seen
  alignas(64) float partial[kPassQueries * kPartialStride];         // Σ p·v of one partition
  alignas(64) std::uint16_t keys[kMaxTiledHeadDim / kStepNumbers * kOperand];  // of 16 tokens
  alignas(64) std::uint16_t values[kMaxTiledHeadDim / kLanes * kValueStride];  // [16 channels][32 tokens]

  std::int32_t tiles() const { return (count + kTileQueries - 1) / kTileQueries; }
  /// Queries with those that fill the last tile up.
  std::int32_t padded_count() const { return tiles() * tile_queries; }
  /// Positions of the partition at `begin` that query q sees; 0 or less when none.
  std::int32_t seen(std::int32_t q, std::int32_t begin) const {
    const std::int32_t positions = visible[q] - begin;
    return positions > kPartition ? kPartition : positions;
  }
};

/// Sixteen bf16 of `value`, rounded.
TANDEM_INLINE void store_bf16(std::uint16_t* to, v16 value) {
  for (int i = 0; i < kParts; ++i) {
    const half_part half = __builtin_convertvector(reinterpret_cast<uint_part>(value.part[i]) >> 16, half_part);
    __builtin_memcpy(to + i * kPartLanes, &half, sizeof half);
  }
}

/// To the nearest bf16, as round_to_bf16() but halves up, for numbers ≥ 0 and the NaNs that arithmetic makes.
TANDEM_INLINE v16 round_weight(v16 value) {
  for (int i = 0; i < kParts; ++i)
    value.part[i] = reinterpret_cast<float_part>((reinterpret_cast<uint_part>(value.part[i]) + 0x8000U) & 0xFFFF0000U);
  return value;
}

/// Makes right operands, and keeps the largest magnitude that it saw as bits: they order like the numbers.
class operand_packer {
 public:
  /// 16 numbers of each row, alternating.
  TANDEM_INLINE void pack(const std::uint16_t* first, const std::uint16_t* second, std::uint16_t* out) {
#if defined(__AVX512BW__)
    const __m512i rows =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first))),
                           _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second)), 1);
    alignas(64) static constexpr std::uint16_t kAlternating[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                   21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                   11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i magnitude = _mm512_and_si512(rows, _mm512_set1_epi16(0x7FFF));
    largest_ = _mm512_max_epu16(largest_, magnitude);
    _mm512_store_si512(out, _mm512_permutexvar_epi16(_mm512_load_si512(kAlternating), rows));
#else
    for (int i = 0; i < kLanes; ++i) {
      out[2 * i] = first[i];
      out[2 * i + 1] = second[i];
      const std::uint32_t larger =
          magnitude(first[i]) > magnitude(second[i]) ? magnitude(first[i]) : magnitude(second[i]);
      largest_ = larger > largest_ ? larger : largest_;
    }
#endif
  }
  bool saw_only_finite() const {
    constexpr std::uint16_t kInfinity = 0x7F80;
#if defined(__AVX512BW__)
    return _mm512_cmpge_epu16_mask(largest_, _mm512_set1_epi16(kInfinity)) == 0;
#else
    return largest_ < kInfinity;
#endif
  }

 private:
#if defined(__AVX512BW__)
  __m512i largest_ = _mm512_setzero_si512();
#else
  static std::uint32_t magnitude(std::uint16_t bf16) {
    return bf16 & 0x7FFFU;
  }

  std::uint32_t largest_ = 0;
#endif
};

alignas(64) constexpr std::uint16_t kZeros[kMaxTiledHeadDim] = {};

/// Channels × 16 of tokens [begin, begin + count), count ≤ 16, that lie in several blocks.
struct gathered_keys {
  alignas(64) std::uint16_t channels[kMaxTiledHeadDim * kLanes] = {};

  gathered_keys(const attention_task& task, std::int32_t begin, std::int32_t count) {
    run_walk walk(task, begin, begin + count);
    while (walk.left > 0) {
      const std::int32_t at = count - walk.left;
      const token_run run = walk.next(kLanes);
      const auto* keys = keys_of<std::uint16_t>(task, run);
      for (std::int32_t d = 0; d < task.cache.head_dim; ++d)
        for (std::int32_t t = 0; t < run.count; ++t)
          channels[d * kLanes + at + t] = keys[std::int64_t{d} * task.cache.key_stride + t];
    }
  }
};

/// Keys of up to 16 tokens, `stride` from channel to channel, to pass.keys.
TANDEM_INLINE void pack_channels(const std::uint16_t* keys, std::int64_t stride, std::int32_t head_dim,
                                 attention_pass& pass) {
  operand_packer packer;
  const std::int32_t padded = round_up(head_dim, kStepNumbers);
  std::uint16_t* to = pass.keys;
  for (std::int32_t d = 0; d < padded; d += 2, to += kStepNumbers)
    packer.pack(d < head_dim ? keys + d * stride : kZeros, d + 1 < head_dim ? keys + (d + 1) * stride : kZeros, to);
}

/// Tokens [begin, begin + count), count ≤ 16; what stands behind them in a block is read too, and ignored later.
void pack_keys(const attention_task& task, std::int32_t begin, std::int32_t count, attention_pass& pass) {
  const token_run run = run_walk(task, begin, begin + count).next(kLanes);
  if (run.count == count)
    return pack_channels(keys_of<std::uint16_t>(task, run), task.cache.key_stride, task.cache.head_dim, pass);
  const gathered_keys gathered(task, begin, count);
  pack_channels(gathered.channels, kLanes, task.cache.head_dim, pass);
}

/// Asks for the values of tokens [begin, begin + count).
TANDEM_INLINE void prefetch_values(const attention_task& task, std::int32_t begin, std::int32_t count) {
  run_walk walk(task, begin, begin + count);
  while (walk.left > 0) {
    const token_run run = walk.next(kLanes);
    const auto* values = reinterpret_cast<const std::byte*>(values_of<std::uint16_t>(task, run));
    const std::int64_t bytes = std::int64_t{run.count} * task.cache.value_stride * std::int64_t{sizeof(std::uint16_t)};
    for (std::int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(values + at, 0, 2);
  }
}

/// Tokens [begin, end), and zeros up to whole steps. False: one of them is not finite.
bool pack_values(const attention_task& task, std::int32_t begin, std::int32_t end, attention_pass& pass) {
  const std::uint16_t* tokens[kPartition];
  const std::int32_t padded = round_up(end - begin, kStepNumbers);
  for (std::int32_t t = end - begin; t < padded; ++t) tokens[t] = kZeros;
  run_walk walk(task, begin, end);
  while (walk.left > 0) {
    const std::uint16_t** to = tokens + (end - begin - walk.left);
    const token_run run = walk.next(kPartition);
    const auto* values = values_of<std::uint16_t>(task, run);
    for (std::int32_t t = 0; t < run.count; ++t) to[t] = values + std::int64_t{t} * task.cache.value_stride;
  }
  operand_packer packer;
  for (std::int32_t t = 0; t < padded; t += 2) {
    std::uint16_t* to = pass.values + t / 2 * kStepNumbers;
    for (std::int32_t c = 0; c < task.cache.value_stride; c += kLanes, to += kValueStride)
      packer.pack(tokens[t] + c, tokens[t + 1] + c, to);
  }
  return packer.saw_only_finite();
}

}  // namespace
}  // namespace tandem::gpu::host

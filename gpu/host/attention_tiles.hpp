#pragma once
/// Attention over bf16 keys and values with AMX tiles; everything else is attention_body.hpp's.
///
/// Computes:   as attention.hpp says, from queries (scaled) and weights that are rounded to bf16.
/// Mapping:    64 queries at a time. Per partition of positions: scores = queries · keys, 16 tokens after 16; their
///             exponentials, query by query; partial = weights · values, 16 channels after 16. Keys and values are the
///             right operand, which all queries of the pass share.
/// Requires:   Tiles: AMX-TILE and AMX-BF16, or an emulation. head_dim ≤ kMaxTiledHeadDim; half a MiB of stack.
/// Cost:       per 16 queries and 32 numbers of a product 16 cycles; per query and position about one more.
///
/// Accuracy:   a rounded query or weight is off by up to 2^-8 of itself (half a unit in the last of 8 places), on
///             average by a third of that; Σ p is that of the rounded weights. Sums in fp32; a query's bits depend on
///             its position alone, but for the sign of a zero.
/// Tested by:  tests/gpu/attention_test.cpp, with the emulation everywhere.

#include "gpu/host/attention_body.hpp"
#include "gpu/host/attention_pass.hpp"
#include "gpu/host/kernels/tile_shapes.hpp"

namespace tandem::gpu::host {
namespace {

/// Queries [first, first + pass.count) of the task, counted row by row, as a left operand.
void load_queries(const attention_task& task, std::int32_t first, attention_pass& pass) {
  const std::int32_t head_dim = task.cache.head_dim;
  const std::int32_t padded = round_up(head_dim, kStepNumbers);
  const std::int32_t left = task.rows * task.group - first;
  pass.count = left < kPassQueries ? left : kPassQueries;
  for (std::int32_t q = 0; q < pass.padded_count(); ++q) {
    alignas(64) float scaled[kMaxTiledHeadDim];
    for (std::int32_t d = q < pass.count ? head_dim : 0; d < padded; ++d) scaled[d] = 0.0F;
    if (q < pass.count) {
      const std::int32_t row = (first + q) / task.group;
      const float* from = task.queries + row * task.query_stride + std::int64_t{(first + q) % task.group} * head_dim;
      for (std::int32_t d = 0; d < head_dim; ++d) scaled[d] = from[d] * task.scale;
      pass.visible[q] = task.first_position + row + 1;
    }
    for (std::int32_t d = 0; d < padded; d += kLanes)
      store_bf16(pass.query + q * kQueryStride + d, round_to_bf16(load16(scaled + d)));
  }
}

/// e^x for x ≤ 0 to 2^-13, then rounded to bf16; 0 for minus infinity; NaN stays NaN. 2^n · 2^f with |f| ≤ 1/2, 2^f by
/// a cubic that is 1 at 0 and off by 1.02e-4 of itself at most (reweighted least squares).
TANDEM_INLINE v16 weight_of(v16 x) {
  constexpr float kRounding = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
  constexpr float kLowest = -87.0F;
  const v16 bounded = choose_greater(splat(kLowest), x, splat(kLowest), x);
  const v16 t = bounded * splat(1.44269504088896341F);
  const v16 shifted = t + splat(kRounding);
  const v16 f = t - (shifted - splat(kRounding));
  v16 power = multiply_add(splat(5.50089037e-2F), f, splat(2.42210968e-1F));
  power = multiply_add(power, f, splat(6.93282933e-1F));
  power = multiply_add(power, f, splat(1.0F));
  power = scale_by_power(power, shifted, splat(kRounding));
  return choose_greater(splat(kLowest), x, splat(0.0F), round_weight(power));
}

/// Turns the first `count` scores of query q into weights, and zeros up to `padded`.
void exponentiate(attention_pass& pass, std::int32_t q, std::int32_t count, std::int32_t padded) {
  float* scores = pass.scores + q * kScoreStride;
  std::uint16_t* weights = pass.weights + q * kWeightStride;
  const std::int32_t whole = count > 0 ? round_up(count, kLanes) : 0;
  for (std::int32_t i = whole; i < padded; i += kLanes) store_bf16(weights + i, splat(0.0F));
  if (count <= 0) return;
  for (std::int32_t i = count; i < whole; ++i) scores[i] = kMinusInfinity;
  v16 top = load16(scores);
  for (std::int32_t i = kLanes; i < whole; i += kLanes) {
    const v16 next = load16(scores + i);
    top = choose_greater(next, top, next, top);
  }
  pass.largest[q] = max_lanes(top);
  v16 sum = splat(0.0F);
  for (std::int32_t i = 0; i < whole; i += kLanes) {
    const v16 power = weight_of(load16(scores + i) - splat(pass.largest[q]));
    sum += power;
    store_bf16(weights + i, power);
  }
  pass.total[q] = sum_lanes(sum);
}

/// A query's scores of the first positions weigh nothing.
void hide(attention_pass& pass, std::int32_t count) {
  for (std::int32_t q = 0; q < pass.count; ++q)
    for (std::int32_t i = 0; i < count; ++i) pass.scores[q * kScoreStride + i] = kMinusInfinity;
}

/// Rows of a left operand: one tile of 16 after the other.
struct left_rows {
  const std::uint16_t* first;
  std::int32_t stride;  // numbers
};

template <class Tiles>
struct attention_tiles {
  static constexpr int kRight = kPassTiles;  // sums are tiles 0..3
  static constexpr int kLeft = kRight + 1;   // two in turns

  static void configure(const attention_pass& pass) {
    tile_shapes shapes;
    for (int tile = 0; tile < kLeft + 2; ++tile) shapes.set(tile, pass.tile_queries, kTileRowBytes);
    shapes.set(kRight, kTileRows, kTileRowBytes);
    Tiles::load_shapes(shapes);
  }

  static const std::byte* bytes(const std::uint16_t* numbers) { return reinterpret_cast<const std::byte*>(numbers); }

  /// Sums [Sum, Count) of one step, whose right operand is loaded.
  template <int Count, int Sum = 0>
  static void add(const left_rows& left) {
    constexpr int kTurn = kLeft + Sum % 2;
    Tiles::template load<kTurn>(bytes(left.first + Sum * kTileQueries * left.stride),
                                static_cast<std::size_t>(left.stride) * sizeof(std::uint16_t));
    Tiles::template dot_bf16<Sum, kTurn, kRight>();
    if constexpr (Sum + 1 < Count) add<Count, Sum + 1>(left);
  }
  template <int Count, int Sum = 0>
  static void zero() {
    Tiles::template zero<Sum>();
    if constexpr (Sum + 1 < Count) zero<Count, Sum + 1>();
  }
  template <int Count, int Sum = 0>
  static void store(float* out, std::int32_t stride) {
    Tiles::template store<Sum>(reinterpret_cast<std::byte*>(out + Sum * kTileQueries * stride),
                               static_cast<std::size_t>(stride) * sizeof(float));
    if constexpr (Sum + 1 < Count) store<Count, Sum + 1>(out, stride);
  }
  /// out (16 · Count rows × 16) = left (… × 32 · steps) · right.
  template <int Count>
  static void product(left_rows left, const std::uint16_t* right, std::int32_t steps, float* out,
                      std::int32_t out_stride) {
    zero<Count>();
    for (std::int32_t step = 0; step < steps; ++step, right += kOperand, left.first += kStepNumbers) {
      Tiles::template load<kRight>(bytes(right), kTileRowBytes);
      add<Count>(left);
    }
    store<Count>(out, out_stride);
  }
  static void product_of(std::int32_t tiles, const left_rows& left, const std::uint16_t* right, std::int32_t steps,
                         float* out, std::int32_t out_stride) {
    static_assert(kPassTiles == 4);
    if (tiles == 1) return product<1>(left, right, steps, out, out_stride);
    if (tiles == 2) return product<2>(left, right, steps, out, out_stride);
    if (tiles == 3) return product<3>(left, right, steps, out, out_stride);
    product<4>(left, right, steps, out, out_stride);
  }

  /// Scores of positions [begin, end), whether a query sees them or not.
  static void score(const attention_task& task, std::int32_t begin, std::int32_t end, attention_pass& pass) {
    const std::int32_t steps = round_up(task.cache.head_dim, kStepNumbers) / kStepNumbers;
    for (std::int32_t at = begin; at < end; at += kLanes) {
      const std::int32_t count = end - at < kLanes ? end - at : kLanes;
      prefetch_values(task, at, count);
      pack_keys(task, at, count, pass);
      product_of(pass.tiles(), {pass.query, kQueryStride}, pass.keys, steps, pass.scores + (at - begin), kScoreStride);
    }
  }

  /// partial = weights · values of `tiles` tiles of queries from `first` on.
  static void weigh_values(std::int32_t first, std::int32_t tiles, std::int32_t padded, std::int32_t channels,
                           attention_pass& pass) {
    const left_rows weights{pass.weights + first * kWeightStride, kWeightStride};
    for (std::int32_t c = 0; c < channels; c += kLanes)
      product_of(tiles, weights, pass.values + c / kLanes * kValueStride, padded / kStepNumbers,
                 pass.partial + first * kPartialStride + c, kPartialStride);
  }

  /// Where a value is not finite, 0 · value is not 0: each query gets the values it sees only.
  static void weigh_values_apart(const attention_task& task, std::int32_t begin, attention_pass& pass) {
    const std::int32_t channels = task.cache.value_stride;
    for (std::int32_t q = pass.count - 1; q >= 0; --q) {
      const std::int32_t seen = pass.seen(q, begin);
      if (seen <= 0) continue;
      float kept[kTileQueries * kPartialStride];
      const std::int32_t first = q / kTileQueries * kTileQueries;
      float* partial = pass.partial + first * kPartialStride;
      __builtin_memcpy(kept, partial, sizeof kept);
      pack_values(task, begin, begin + seen, pass);
      weigh_values(first, 1, round_up(seen, kStepNumbers), channels, pass);
      __builtin_memcpy(kept + (q - first) * kPartialStride, partial + (q - first) * kPartialStride,
                       kPartialStride * sizeof(float));
      __builtin_memcpy(partial, kept, sizeof kept);
    }
  }

  static void attend_partition(const attention_task& task, std::int32_t begin, attention_pass& pass) {
    const std::int32_t count = pass.seen(pass.count - 1, begin);
    const std::int32_t padded = round_up(count, kStepNumbers);
    score(task, begin, begin + count, pass);
    prefetch_keys<std::uint16_t>(task, begin + kPartition, begin + 2 * kPartition);
    if (begin == 0 && task.unseen_positions > 0) hide(pass, task.unseen_positions);
    for (std::int32_t q = 0; q < pass.padded_count(); ++q)
      exponentiate(pass, q, q < pass.count ? pass.seen(q, begin) : 0, padded);
    if (!pack_values(task, begin, begin + count, pass)) return weigh_values_apart(task, begin, pass);
    weigh_values(0, pass.tiles(), padded, task.cache.value_stride, pass);
  }

  static void attend(const attention_task& task) {
    if (!fits(task)) return host::attend(task);
    attention_pass pass(task);
    configure(pass);
    const std::int32_t stride = task.cache.value_stride;
    running_softmax softmax[kPassQueries];
    for (std::int32_t first = 0; first < task.rows * task.group; first += kPassQueries) {
      load_queries(task, first, pass);
      for (std::int32_t begin = 0; begin < pass.visible[pass.count - 1]; begin += kPartition) {
        attend_partition(task, begin, pass);
        for (std::int32_t q = 0; q < pass.count; ++q)
          if (pass.seen(q, begin) > 0)
            merge(softmax[q], begin == 0, pass.partial + q * kPartialStride, stride, pass.largest[q], pass.total[q]);
      }
      for (std::int32_t q = 0; q < pass.count; ++q) store_result(task, first + q, softmax[q]);
    }
    Tiles::release();
  }

  static void attend_partitions(const attention_task& task, std::int32_t first_partition, std::int32_t end_partition) {
    if (!fits(task)) return host::attend_partitions(task, first_partition, end_partition);
    attention_pass pass(task);
    configure(pass);
    for (std::int32_t first = 0; first < task.rows * task.group; first += kPassQueries) {
      load_queries(task, first, pass);
      for (std::int32_t partition = first_partition; partition < end_partition; ++partition) {
        if (pass.seen(pass.count - 1, partition * kPartition) <= 0) break;
        attend_partition(task, partition * kPartition, pass);
        keep_partials(task, first, partition, pass);
      }
    }
    Tiles::release();
  }

  static void keep_partials(const attention_task& task, std::int32_t first, std::int32_t partition,
                            const attention_pass& pass) {
    const std::int32_t stride = task.cache.value_stride;
    for (std::int32_t q = 0; q < pass.count; ++q) {
      if (pass.seen(q, partition * kPartition) <= 0) continue;
      float* to = partial_of(task, first + q, partition);
      __builtin_memcpy(to, pass.partial + q * kPartialStride, static_cast<std::size_t>(stride) * sizeof(float));
      to[stride] = pass.largest[q];
      to[stride + 1] = pass.total[q];
    }
  }

  static bool fits(const attention_task& task) {
    return task.cache.format == kv_format::bf16 && task.cache.head_dim <= kMaxTiledHeadDim;
  }

  static constexpr attention_kernels table() { return {attend, attend_partitions, merge_partials}; }
};

}  // namespace
}  // namespace tandem::gpu::host

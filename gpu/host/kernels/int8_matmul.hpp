#pragma once
/// int8_matmul, for every block-quantised format and instruction set.
///
/// Computes:   out[m][n] = Σ_blocks scale·x_scale·(Σ_k (q−zero)·x_q)  [+ minimum·x_scale·Σ_k x_q], 32 inputs a block.
/// Shapes and layout: tile and activation_block as gpu/host/packed_layout.hpp says; columns a multiple of 32.
/// Mapping:    one vector lane per output; up to kMaxRows rows share each unpacked block. Blocks in ascending order;
/// per
///             block one rounded product x_scale·scale and one fused multiply-add, then one more for the minimum (Q6_K:
///             two for its halves). The integer dot is exact, so its inner order is free.
/// Requires:   nothing of its own; V brings the instruction set.
/// Cost:       32 multiply-adds per input row, output and block; weights are read once per kMaxRows rows.
/// Accuracy:   that of int8 activations (relative error about 5e-3 against exact inputs); against the quantised inputs
/// a
///             few float roundings per block. The same bits on every instruction set.
/// Tested by:  tests/gpu/kernels.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/host/kernels/block_dots.hpp"

namespace tandem::gpu::host {
namespace {

/// `Dots` is one of block_dots.hpp.
template <class V, class Format, template <class, class> class Dots>
struct int8_matmul {
  using block_dots = Dots<V, Format>;
  static constexpr int kMaxRows = V::kInt8Rows;
  static constexpr int kVectors = block_dots::kVectors;
  /// Far enough that memory answers before a group of rows has used up what lies between.
  static constexpr std::size_t kPrefetchAhead = 4096;
  using ints = typename V::ints;
  using floats = typename V::floats;

  /// What an integer dot starts with, so that it counts q − zero: exact, and cheaper than a float correction.
  static ints start(std::int32_t negative_sum) {
    // Full bytes may be multiplied as signed ones, which has the zero point inside.
    if constexpr (Format::kZeroBits < 0 || (Format::kQuantBits == 8 && V::kFullBytesAreSigned)) {
      static_cast<void>(negative_sum);
      return V::zero_ints();
    } else {
      return V::template shift_left<Format::kZeroBits>(V::broadcast(negative_sum));
    }
  }

  template <int Rows>
  static void start_all(ints (&dots)[Rows][kVectors], const std::int32_t (&negative_sums)[Rows]) {
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      TANDEM_UNROLL
      for (int v = 0; v < kVectors; ++v) dots[r][v] = start(negative_sums[r]);
    }
  }

  /// sums += scale · x_scale · dots, and the minimum's part.
  template <int Rows>
  static void add_scaled(const ints (&dots)[Rows][kVectors], typename V::floats scale, int v,
                         const activation_block* const (&x)[Rows], std::int64_t block, floats (&sums)[Rows][kVectors]) {
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const floats factor = V::multiply(scale, V::broadcast(x[r][block].scale));
      sums[r][v] = V::fused(V::to_floats(dots[r][v]), factor, sums[r][v]);
    }
  }

  /// One term of a block's inputs against its weights; `block` counts through the terms.
  template <int Rows>
  TANDEM_INLINE static void add_term(const block_dots& weights, const std::byte* header, std::int64_t in_unit, int lane,
                                     const activation_block* const (&x)[Rows], std::int64_t block,
                                     floats (&sums)[Rows][kVectors]) {
    if constexpr (Format::kTwoScales) return add_halves<Rows>(weights, header, in_unit, lane, x, block, sums);
    ints dots[Rows][kVectors];
    std::int32_t negative_sums[Rows];
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) negative_sums[r] = x[r][block].negative_sum;
    start_all<Rows>(dots, negative_sums);
    weights.template add_to<0, 8, Rows>(dots, x, block);
    TANDEM_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const int first = lane + v * V::kLanes;
      add_scaled<Rows>(dots, Format::template scale<V>(header, in_unit, first), v, x, block, sums);
      if constexpr (Format::kHasMinimum) {
        const floats minimum = Format::template minimum<V>(header, in_unit, first);
        TANDEM_UNROLL
        for (int r = 0; r < Rows; ++r) {
          sums[r][v] = V::fused(minimum, V::broadcast(x[r][block].scaled_sum), sums[r][v]);
        }
      }
    }
  }

  /// The same for a block whose halves have a scale each.
  template <int Rows>
  TANDEM_INLINE static void add_halves(const block_dots& weights, const std::byte* header, std::int64_t in_unit,
                                       int lane, const activation_block* const (&x)[Rows], std::int64_t block,
                                       floats (&sums)[Rows][kVectors]) {
    ints dots[Rows][kVectors];
    std::int32_t negative_sums[Rows];
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) negative_sums[r] = x[r][block].negative_low;
    start_all<Rows>(dots, negative_sums);
    weights.template add_to<0, 4, Rows>(dots, x, block);
    TANDEM_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      add_scaled<Rows>(dots, Format::template scale<V>(header, in_unit, lane + v * V::kLanes), v, x, block, sums);
    }
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) negative_sums[r] = x[r][block].negative_sum - x[r][block].negative_low;
    start_all<Rows>(dots, negative_sums);
    weights.template add_to<4, 4, Rows>(dots, x, block);
    TANDEM_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      add_scaled<Rows>(dots, Format::template second_scale<V>(header, in_unit, lane + v * V::kLanes), v, x, block,
                       sums);
    }
  }

  /// Which rows keep a second term, for the 64 blocks from `block` on; the return value has all of them together.
  template <int Rows>
  static std::uint64_t second_terms(const matmul_task& task, const activation_block* const (&x)[Rows],
                                    std::int64_t block, std::uint64_t (&kept)[Rows]) {
    if (task.terms == 1) return 0;
    std::uint64_t any = 0;
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      kept[r] = reinterpret_cast<const std::uint64_t*>(x[r] + 2 * task.blocks)[block / 64];
      any |= kept[r];
    }
    return any;
  }

  /// Few rows one by one, many together: those that keep none there have zeros, which add nothing, so the bits of a row
  /// do not depend on its neighbours.
  template <int Rows>
  static void add_second_terms(const block_dots& weights, const std::byte* header, std::int64_t in_unit, int lane,
                               const activation_block* const (&x)[Rows], std::int64_t block,
                               const std::uint64_t (&kept)[Rows], int bit, floats (&sums)[Rows][kVectors]) {
    int count = 0;
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) count += static_cast<int>(kept[r] >> bit & 1);
    if (2 * count > Rows) return add_term<Rows>(weights, header, in_unit, lane, x, block, sums);
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      if ((kept[r] >> bit & 1) == 0) continue;
      const activation_block* const one[1] = {x[r]};
      floats sum[1][kVectors];
      TANDEM_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[0][v] = sums[r][v];
      add_term<1>(weights, header, in_unit, lane, one, block, sum);
      TANDEM_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = sum[0][v];
    }
  }

  template <int Rows>
  static void run(const matmul_task& task, std::int32_t row) {
    constexpr format_layout kLayout = Format::kLayout;
    const activation_block* x[Rows];
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      x[r] =
          reinterpret_cast<const activation_block*>(task.input + static_cast<std::size_t>(row + r) * task.input_stride);
    }
    for (int lane = 0; lane < kTileOutputs; lane += kVectors * V::kLanes) {
      floats sums[Rows][kVectors];
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) {
        TANDEM_UNROLL
        for (int v = 0; v < kVectors; ++v) sums[r][v] = V::zero_floats();
      }
      const std::byte* at = task.tile;
      std::uint64_t any_kept = 0;
      std::uint64_t kept[Rows] = {};
      for (std::int64_t block = 0; block < task.blocks;) {
        const std::byte* header = at;
        at += kLayout.header_bytes;
        const std::int64_t left = task.blocks - block;
        const std::int64_t in_this_unit = left < kLayout.blocks_per_unit ? left : kLayout.blocks_per_unit;
        for (std::int64_t i = 0; i < in_this_unit; ++i, ++block, at += kLayout.plane_bytes) {
          if (block % 64 == 0) any_kept = second_terms<Rows>(task, x, block, kept);
          V::template prefetch<kLayout.plane_bytes>(at + kPrefetchAhead);
          const block_dots weights(at, lane);
          add_term<Rows>(weights, header, i, lane, x, block, sums);
          const int bit = static_cast<int>(block % 64);
          if ((any_kept >> bit & 1) == 0) continue;
          add_second_terms<Rows>(weights, header, i, lane, x, block + task.blocks, kept, bit, sums);
        }
      }
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) {
        TANDEM_UNROLL
        for (int v = 0; v < kVectors; ++v) store_outputs<V>(task, row + r, lane + v * V::kLanes, sums[r][v]);
      }
    }
  }
};

}  // namespace
}  // namespace tandem::gpu::host

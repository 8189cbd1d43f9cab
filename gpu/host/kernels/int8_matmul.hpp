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

#include "gpu/host/kernels/row_groups.hpp"
// row_groups.hpp defines what the next header uses.
#include "gpu/host/kernels/int8_formats.hpp"

namespace tandem::gpu::host {
namespace {

template <class V, class Format>
struct int8_matmul {
  static constexpr int kMaxRows = V::kInt8Rows;
  /// Far enough that memory answers before a group of rows has used up what lies between.
  static constexpr std::size_t kPrefetchAhead = 4096;
  using bytes = typename V::bytes;
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

  /// dots[r] += Σ over quads First..First+Count. Rows inside, so that independent sums follow each other, unless the
  /// instruction set wants a row's quads together.
  template <int First, int Count, int Rows>
  static void add_dots(const bytes (&quants)[8], const activation_block* const (&x)[Rows], std::int64_t block,
                       ints (&dots)[Rows]) {
    if constexpr (V::kQuadsTogether) {
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) {
        dots[r] = V::template dot_quads<Format::kQuantBits, First, Count>(dots[r], quants, x[r][block].quants);
      }
    } else {
      TANDEM_UNROLL
      for (int j = First; j < First + Count; ++j) {
        TANDEM_UNROLL
        for (int r = 0; r < Rows; ++r) dots[r] = V::dot(dots[r], quants[j], x[r][block].quants + 4 * j);
      }
    }
  }

  /// One term of a block's inputs against its unpacked weights; `block` counts through the terms.
  template <int Rows>
  static void add_term(const bytes (&quants)[8], const std::byte* header, std::int64_t in_unit, int lane,
                       const activation_block* const (&x)[Rows], std::int64_t block, floats (&sums)[Rows]) {
    const floats scale = Format::template scale<V>(header, in_unit, lane);
    ints dots[Rows];
    if constexpr (Format::kTwoScales) {
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) dots[r] = start(x[r][block].negative_low);
      add_dots<0, 4>(quants, x, block, dots);
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) {
        sums[r] = V::fused(V::to_floats(dots[r]), V::multiply(scale, V::broadcast(x[r][block].scale)), sums[r]);
        dots[r] = start(x[r][block].negative_sum - x[r][block].negative_low);
      }
      add_dots<4, 4>(quants, x, block, dots);
      const floats second = Format::template second_scale<V>(header, in_unit, lane);
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) {
        sums[r] = V::fused(V::to_floats(dots[r]), V::multiply(second, V::broadcast(x[r][block].scale)), sums[r]);
      }
    } else {
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) dots[r] = start(x[r][block].negative_sum);
      add_dots<0, 8>(quants, x, block, dots);
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const activation_block& a = x[r][block];
        sums[r] = V::fused(V::to_floats(dots[r]), V::multiply(scale, V::broadcast(a.scale)), sums[r]);
        if constexpr (Format::kHasMinimum) {
          sums[r] = V::fused(Format::template minimum<V>(header, in_unit, lane), V::broadcast(a.scaled_sum), sums[r]);
        }
      }
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
  static void add_second_terms(const bytes (&quants)[8], const std::byte* header, std::int64_t in_unit, int lane,
                               const activation_block* const (&x)[Rows], std::int64_t block,
                               const std::uint64_t (&kept)[Rows], int bit, floats (&sums)[Rows]) {
    int count = 0;
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) count += static_cast<int>(kept[r] >> bit & 1);
    if (2 * count > Rows) return add_term<Rows>(quants, header, in_unit, lane, x, block, sums);
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      if ((kept[r] >> bit & 1) == 0) continue;
      const activation_block* const one[1] = {x[r]};
      floats sum[1] = {sums[r]};
      add_term<1>(quants, header, in_unit, lane, one, block, sum);
      sums[r] = sum[0];
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
    for (int lane = 0; lane < kTileOutputs; lane += V::kLanes) {
      floats sums[Rows];
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) sums[r] = V::zero_floats();
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
          bytes quants[8];
          Format::plane::template unpack<V>(at, lane, quants);
          add_term<Rows>(quants, header, i, lane, x, block, sums);
          const int bit = static_cast<int>(block % 64);
          if ((any_kept >> bit & 1) == 0) continue;
          add_second_terms<Rows>(quants, header, i, lane, x, block + task.blocks, kept, bit, sums);
        }
      }
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) store_outputs<V>(task, row + r, lane, sums[r]);
    }
  }
};

}  // namespace
}  // namespace tandem::gpu::host

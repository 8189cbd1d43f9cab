#pragma once
/// amx_int8_matmul: every block-quantised format with AMX, 16 input rows at a time.
///
/// Computes:   what int8_matmul computes, with the same bits.
/// Shapes and layout: tile and activation_block as gpu/host/packed_layout.hpp says. Inputs load straight from the
///             activation blocks (32 bytes of each, one row stride apart). Weights: a plane of bytes without a zero
///             point is a weight tile already; others are unpacked to one, as int8 with the zero point taken off.
/// Mapping:    a block of 32 inputs × 16 rows × 16 outputs is one tile product (Q6_K: one per 16 inputs, which have a
///             scale of their own). It cannot be longer, because the scale changes. kChunkBlocks blocks are unpacked at
///             a time for all rows; 16 rows' sums stay in registers along a chunk. The product of a block is issued
///             before the one before it is scaled, so that the two may overlap.
/// Requires:   Tiles: AMX-TILE and AMX-INT8, or an emulation. V: 16 lanes. At least 16 rows.
/// Cost:       per block and 16 rows: 16 cycles of tile product (Q6_K 32), a tile store, and 48 vector operations (a
///             minimum: 64, Q6_K: 96), against 12 × 16 (Q6_K: 16 × 16) of the vector kernel.
/// Accuracy:   the dot is an exact int32; scales are applied by the same operations in the same order as in
/// int8_matmul. Tested by:  tests/gpu/kernels/amx_*_test.cpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gpu/host/kernels/amx_groups.hpp"
#include "gpu/host/kernels/row_groups.hpp"
// row_groups.hpp defines what the next header uses.
#include "gpu/host/kernels/int8_formats.hpp"

namespace tandem::gpu::host {
namespace {

template <class Tiles, class V, class Format>
struct amx_int8_matmul {
  using bytes = typename V::bytes;
  using ints = typename V::ints;
  using floats = typename V::floats;
  static_assert(V::kLanes == kTileOutputs);

  static constexpr format_layout kLayout = Format::kLayout;
  static constexpr int kParts = Format::kTwoScales ? 2 : 1;  // products of a block and term
  static constexpr int kMaxTerms = 2;
  static constexpr int kPartInputs = kBlockInputs / kParts;
  static constexpr std::size_t kPartBytes = 16 * static_cast<std::size_t>(kPartInputs);  // of a weight tile
  static constexpr std::size_t kDots = static_cast<std::size_t>(kTileRows) * kTileOutputs;
  static constexpr bool kPlaneIsTile = std::is_same_v<typename Format::plane, byte_plane> && Format::kZeroBits < 0;
  static constexpr std::size_t kPrefetchAhead = 4096;  // see int8_matmul
  /// 16 blocks unpacked (8 KiB), their scales (2 KiB) and the sums of 128 rows (8 KiB) share a 48 KiB level-1 cache.
  static constexpr int kChunkBlocks = 16;
  static constexpr int kMaxGroups = 8;
  static_assert(64 % kChunkBlocks == 0);  // a chunk's bits of second terms are in one word
  // Sums are tiles 0..3, one per term and part.
  static constexpr int kInputTile = 4;
  static constexpr int kWeightTile = 6;

  /// Blocks of a tile, unpacked. `second` are the minimums, or the scales of second halves.
  struct chunk {
    alignas(kCacheLine) std::byte unpacked[kPlaneIsTile ? 1 : kChunkBlocks][512];
    alignas(kCacheLine) float scales[kChunkBlocks][kTileOutputs];
    alignas(kCacheLine) float second[kChunkBlocks][kTileOutputs];
    const std::byte* quants[kChunkBlocks];
    std::int64_t first = 0;
    int blocks = 0;
  };

  /// Products of two neighbouring blocks: of one while the other is scaled.
  struct products {
    alignas(kCacheLine) std::int32_t dots[2][kMaxTerms * kParts][kDots];
  };

  /// 16 rows of input. The first row's block b of term t is at(b + t · blocks).
  struct input_group {
    const std::byte* first;
    std::size_t stride;
    std::int64_t blocks;
    std::int32_t terms;

    const std::byte* at(std::int64_t block) const {
      return first + static_cast<std::size_t>(block) * sizeof(activation_block);
    }
    /// Bit i: some row keeps a second term of block `from` + i, i < kChunkBlocks. The others have zeros there.
    std::uint32_t second_terms(std::int64_t from) const {
      if (terms == 1) return 0;
      std::uint64_t kept = 0;
      for (std::size_t r = 0; r < kTileRows; ++r) {
        kept |= reinterpret_cast<const std::uint64_t*>(
            first + r * stride + static_cast<std::size_t>(2 * blocks) * sizeof(activation_block))[from / 64];
      }
      return static_cast<std::uint32_t>(kept >> (from % 64));
    }
  };

  static constexpr tile_shapes shapes() {
    tile_shapes shapes;
    for (int sum = 0; sum < kMaxTerms * kParts; ++sum) shapes.set(sum, kTileRows, kTileRowBytes);
    for (int part = 0; part < kParts; ++part) {
      shapes.set(kInputTile + part, kTileRows, kPartInputs);
      shapes.set(kWeightTile + part, kPartInputs / 4, kTileRowBytes);
    }
    return shapes;
  }

  static const std::byte* unpack(const std::byte* plane, std::byte (&to)[512]) {
    V::template prefetch<kLayout.plane_bytes>(plane + kPrefetchAhead);
    if constexpr (kPlaneIsTile) return plane;
    bytes quants[8];
    Format::plane::template unpack<V>(plane, 0, quants);
    TANDEM_UNROLL
    for (int j = 0; j < 8; ++j) {
      if constexpr (Format::kZeroBits >= 0) quants[j] = V::template without_zero<Format::kZeroBits>(quants[j]);
      V::store_bytes(to + 64 * j, quants[j]);
    }
    return to;
  }

  static void fill_block(chunk& to, int index, const std::byte* header, const std::byte* plane, std::int64_t in_unit) {
    to.quants[index] = unpack(plane, to.unpacked[kPlaneIsTile ? 0 : index]);
    V::store(to.scales[index], Format::template scale<V>(header, in_unit, 0));
    if constexpr (Format::kTwoScales) {
      V::store(to.second[index], Format::template second_scale<V>(header, in_unit, 0));
    } else if constexpr (Format::kHasMinimum) {
      V::store(to.second[index], Format::template minimum<V>(header, in_unit, 0));
    }
  }

  /// Chunks start at units: kChunkBlocks is a multiple of every unit.
  static void fill(chunk& to, const matmul_task& task, std::int64_t first) {
    static_assert(kChunkBlocks % kLayout.blocks_per_unit == 0);
    const auto units = static_cast<std::size_t>(first / kLayout.blocks_per_unit);
    const std::byte* at =
        task.tile + units * kLayout.header_bytes + static_cast<std::size_t>(first) * kLayout.plane_bytes;
    to.first = first;
    to.blocks = static_cast<int>(std::min<std::int64_t>(kChunkBlocks, task.blocks - first));
    for (int index = 0; index < to.blocks;) {
      const std::byte* header = at;
      at += kLayout.header_bytes;
      const int in_this_unit = std::min(kLayout.blocks_per_unit, to.blocks - index);
      for (int i = 0; i < in_this_unit; ++i, ++index, at += kLayout.plane_bytes) fill_block(to, index, header, at, i);
    }
  }

  template <int Term, int Part>
  static void multiply_part(const input_group& x, std::int64_t block, std::int32_t* dots) {
    constexpr int kSum = Term * kParts + Part;
    Tiles::template zero<kSum>();
    Tiles::template load<kInputTile + Part>(x.at(block) + Part * kPartInputs, x.stride);
    Tiles::template dot_int8<kSum, kInputTile + Part, kWeightTile + Part>();
    Tiles::template store<kSum>(reinterpret_cast<std::byte*>(dots), kTileRowBytes);
  }

  /// All products of one block; `second`: of its second term as well.
  static void multiply(const chunk& from, int index, const input_group& x, bool second,
                       std::int32_t (&dots)[kMaxTerms * kParts][kDots]) {
    const std::int64_t block = from.first + index;
    Tiles::template load<kWeightTile>(from.quants[index], kTileRowBytes);
    if constexpr (kParts == 2) Tiles::template load<kWeightTile + 1>(from.quants[index] + kPartBytes, kTileRowBytes);
    multiply_part<0, 0>(x, block, dots[0]);
    if constexpr (kParts == 2) multiply_part<0, 1>(x, block, dots[1]);
    if (!second) return;
    multiply_part<1, 0>(x, block + x.blocks, dots[kParts]);
    if constexpr (kParts == 2) multiply_part<1, 1>(x, block + x.blocks, dots[3]);
  }

  /// One term's products into the sums, as int8_matmul::add_term does.
  static void scale_term(const chunk& from, int index, const input_group& x, std::int64_t block,
                         const std::int32_t (*dots)[kDots], floats (&sums)[kTileRows]) {
    const floats scale = V::load_floats(reinterpret_cast<const std::byte*>(from.scales[index]));
    const floats second = V::load_floats(reinterpret_cast<const std::byte*>(from.second[index]));
    const std::byte* at = x.at(block);
    TANDEM_UNROLL
    for (int r = 0; r < kTileRows; ++r, at += x.stride) {
      const activation_block& a = *reinterpret_cast<const activation_block*>(at);
      const floats input_scale = V::broadcast(a.scale);
      const floats low = V::to_floats(V::load_ints(dots[0] + r * kTileOutputs));
      sums[r] = V::fused(low, V::multiply(scale, input_scale), sums[r]);
      if constexpr (Format::kTwoScales) {
        const floats high = V::to_floats(V::load_ints(dots[1] + r * kTileOutputs));
        sums[r] = V::fused(high, V::multiply(second, input_scale), sums[r]);
      } else if constexpr (Format::kHasMinimum) {
        sums[r] = V::fused(second, V::broadcast(a.scaled_sum), sums[r]);
      }
    }
  }

  static void scale(const chunk& from, int index, const input_group& x, bool second,
                    const std::int32_t (&dots)[kMaxTerms * kParts][kDots], floats (&sums)[kTileRows]) {
    scale_term(from, index, x, from.first + index, dots, sums);
    if (second) scale_term(from, index, x, from.first + index + x.blocks, dots + kParts, sums);
  }

  /// One chunk into the sums of 16 rows, which start at zero with the first chunk.
  static void add_chunk(const chunk& from, const input_group& x, products& work,
                        float (&kept)[kTileRows][kTileOutputs]) {
    floats sums[kTileRows];
    TANDEM_UNROLL
    for (int r = 0; r < kTileRows; ++r) {
      sums[r] = from.first == 0 ? V::zero_floats() : V::load_floats(reinterpret_cast<const std::byte*>(kept[r]));
    }
    const std::uint32_t seconds = x.second_terms(from.first);
    const auto has_second = [seconds](int index) { return (seconds >> index & 1U) != 0; };
    multiply(from, 0, x, has_second(0), work.dots[0]);
    for (int index = 1; index <= from.blocks; ++index) {
      if (index < from.blocks) multiply(from, index, x, has_second(index), work.dots[index % 2]);
      scale(from, index - 1, x, has_second(index - 1), work.dots[(index - 1) % 2], sums);
    }
    TANDEM_UNROLL
    for (int r = 0; r < kTileRows; ++r) V::store(kept[r], sums[r]);
  }

  static void write(const matmul_task& task, std::int32_t row, const float (&sums)[kTileRows][kTileOutputs]) {
    for (int r = 0; r < kTileRows; ++r) {
      store_outputs<V>(task, row + r, 0, V::load_floats(reinterpret_cast<const std::byte*>(sums[r])));
    }
  }

  /// Groups [begin, begin + count), count ≤ kMaxGroups, which share each unpacked chunk.
  static void multiply_groups(const matmul_task& task, std::int32_t begin, std::int32_t count) {
    alignas(kCacheLine) float sums[kMaxGroups][kTileRows][kTileOutputs];
    chunk unpacked;
    products work;
    for (std::int64_t first = 0; first < task.blocks; first += kChunkBlocks) {
      fill(unpacked, task, first);
      for (std::int32_t g = 0; g < count; ++g) {
        const input_group x{input_row(task, first_row_of(begin + g, task.rows)), task.input_stride, task.blocks,
                            task.terms};
        add_chunk(unpacked, x, work, sums[g]);
      }
    }
    for (std::int32_t g = 0; g < count; ++g) write(task, first_row_of(begin + g, task.rows), sums[g]);
  }

  /// `groups` groups of 16 rows, the last of which may reach back over rows of the one before.
  static void run(const matmul_task& task, std::int32_t groups) {
    static constexpr tile_shapes kShapes = shapes();
    Tiles::load_shapes(kShapes);
    for (std::int32_t begin = 0; begin < groups; begin += kMaxGroups) {
      multiply_groups(task, begin, std::min(kMaxGroups, groups - begin));
    }
  }
};

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// panel_matmul: every panel format with AMX, for every row count (docs/decisions/0020).
///
/// Computes:   out[m][n] = Σ_k x[m][k]·w[n][k], x and w rounded to bf16, sums in fp32.
/// Shapes and layout: panel as gpu/host/packed_layout.hpp says, inputs as bf16_columns. Weights are the left operand
///             (16 outputs × 32 inputs), inputs the right one (32 inputs × up to 16 rows), so sums come out as
///             outputs × rows.
/// Mapping:    2 × 16 outputs. Up to 32 rows: each block is unpacked into level-1 cache and multiplied kLag blocks
///             later, while the next one is unpacked. More rows: kChunkBlocks blocks are unpacked and stay in level 1
///             while the rows stream past, 32 at a time; their sums are kept as tiles between chunks.
/// Requires:   Tiles: AMX-TILE and AMX-BF16, or an emulation. At most kMaxPanelRows rows.
/// Cost:       per block and panel 32 row unpackings and, for each 16 rows, 2 × 16 cycles.
/// Accuracy:   per 32 inputs two chains of 16 products are summed in fp32, then added, then added to the total, for any
///             number of rows: the same bits. Error ≤ (columns/2 + 2) · 2^-24 of Σ|x·w| for the rounded numbers.
///             Denormals count as zero.
/// Tested by:  tests/gpu/kernels/amx_*_test.cpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/assert.hpp"
#include "gpu/host/kernels/kernel_table.hpp"
#include "gpu/host/kernels/panel_numbers.hpp"
#include "gpu/host/kernels/tile_shapes.hpp"

namespace tandem::gpu::host {
namespace {

template <class Tiles, class Unpack, packed_format Format>
struct panel_matmul {
  static constexpr format_layout kLayout = layout_of(Format);
  static constexpr bool kIsUnpacked = Format == packed_format::panel_bf16;
  static constexpr std::int64_t kUnitBlocks = kLayout.blocks_per_unit;
  static constexpr std::size_t kUnitBytes =
      kLayout.header_bytes + static_cast<std::size_t>(kUnitBlocks) * kLayout.plane_bytes;
  static constexpr std::int64_t kNumbersAhead = 2;  // blocks: what is just stored is slow to load
  static constexpr std::int64_t kLag = 1;
  static constexpr std::int64_t kRing = 4;
  static constexpr std::int64_t kChunkBlocks = 8;
  static constexpr std::int32_t kFewRows = 2 * kColumnRows;
  static constexpr std::size_t kTileBytes = kTileRows * kTileRowBytes;
  static constexpr std::size_t kSumFloats = kTileBytes / sizeof(float);
  // Sums are tiles 0..3: outputs 0–15 and 16–31 of the first 16 rows, then of the second.
  static constexpr int kWeights = 4;
  static constexpr int kInputs = 6;

  using sum_tiles = float[4][kSumFloats];

  static tile_shapes shapes_of(const matmul_task& task) {
    const auto input_bytes = static_cast<std::size_t>(task.rows_per_group) * 4;
    tile_shapes shapes;
    for (int sum = 0; sum < 4; ++sum) shapes.set(sum, kTileRows, input_bytes);
    for (int i = 0; i < 2; ++i) {
      shapes.set(kWeights + i, kTileRows, kTileRowBytes);
      shapes.set(kInputs + i, kTileRows, input_bytes);
    }
    return shapes;
  }

  static const std::byte* header_of(const matmul_task& task, std::int64_t block) {
    return task.tile + static_cast<std::size_t>(block / kUnitBlocks) * kUnitBytes;
  }
  static const std::byte* plane_of(const matmul_task& task, std::int64_t block) {
    return header_of(task, block) + kLayout.header_bytes +
           static_cast<std::size_t>(block % kUnitBlocks) * kLayout.plane_bytes;
  }
  using numbers = panel_numbers<has_two_scales(Format)>;

  static void read_numbers(const matmul_task& task, std::int64_t block, numbers& to) {
    if constexpr (!kIsUnpacked) {
      if (block < task.blocks) Unpack::template numbers<Format>(header_of(task, block), block % kUnitBlocks, to);
    }
  }
  /// Where the block's rows of bf16 are: in `to`, unless they are packed that way.
  static const std::byte* unpack(const matmul_task& task, std::int64_t block, const numbers& of_block, std::byte* to) {
    const std::byte* plane = plane_of(task, block);
    if constexpr (kIsUnpacked) {
      for (std::size_t line = 0; line < kLayout.plane_bytes; line += kCacheLine) Unpack::prefetch(plane + line);
      return plane;
    } else {
      Unpack::template weights<Format>(plane, of_block, to);
      return to;
    }
  }

  template <int Groups>
  static void zero_sums() {
    Tiles::template zero<0>();
    Tiles::template zero<1>();
    if constexpr (Groups == 1) return;
    Tiles::template zero<2>();
    Tiles::template zero<3>();
  }
  /// One block of weights times one of each group's inputs, whose rows are `row_bytes` apart.
  template <int Groups>
  static void multiply(const std::byte* weights, const std::byte* const (&x)[Groups], std::size_t row_bytes) {
    Tiles::template load<kWeights>(weights, kTileRowBytes);
    Tiles::template load<kInputs>(x[0], row_bytes);
    Tiles::template dot_bf16<0, kWeights, kInputs>();
    Tiles::template load<kWeights + 1>(weights + kTileBytes, kTileRowBytes);
    Tiles::template dot_bf16<1, kWeights + 1, kInputs>();
    if constexpr (Groups == 1) return;
    Tiles::template load<kInputs + 1>(x[Groups - 1], row_bytes);
    Tiles::template dot_bf16<2, kWeights, kInputs + 1>();
    Tiles::template dot_bf16<3, kWeights + 1, kInputs + 1>();
  }
  template <int Groups>
  static void load_sums(const sum_tiles& from) {
    Tiles::template load<0>(reinterpret_cast<const std::byte*>(from[0]), kTileRowBytes);
    Tiles::template load<1>(reinterpret_cast<const std::byte*>(from[1]), kTileRowBytes);
    if constexpr (Groups == 1) return;
    Tiles::template load<2>(reinterpret_cast<const std::byte*>(from[2]), kTileRowBytes);
    Tiles::template load<3>(reinterpret_cast<const std::byte*>(from[3]), kTileRowBytes);
  }
  template <int Groups>
  static void store_sums(sum_tiles& to) {
    Tiles::template store<0>(reinterpret_cast<std::byte*>(to[0]), kTileRowBytes);
    Tiles::template store<1>(reinterpret_cast<std::byte*>(to[1]), kTileRowBytes);
    if constexpr (Groups == 1) return;
    Tiles::template store<2>(reinterpret_cast<std::byte*>(to[2]), kTileRowBytes);
    Tiles::template store<3>(reinterpret_cast<std::byte*>(to[3]), kTileRowBytes);
  }

  /// Two groups' sums as rows of outputs, the first of them row `row`.
  static void write(const matmul_task& task, std::int32_t row, const sum_tiles& sums) {
    for (int group = 0; group < 2; ++group, row += kColumnRows) {
      const int rows = std::min(kColumnRows, task.rows - row);
      if (rows <= 0) return;
      float* out = task.out + row * task.out_stride;
      Unpack::write(sums[2 * group], rows, std::min(task.outputs, kTileOutputs), out, task.out_stride);
      const int upper = task.outputs - kTileOutputs;
      if (upper > 0) Unpack::write(sums[2 * group + 1], rows, upper, out + kTileOutputs, task.out_stride);
    }
  }

  template <int Groups>
  static void run_few(const matmul_task& task) {
    alignas(kCacheLine) std::byte unpacked[kIsUnpacked ? 1 : kRing][kPanelBlockBytes];
    numbers kept[kRing];
    const std::byte* weights[kRing];
    const std::size_t row_bytes = static_cast<std::size_t>(task.rows_per_group) * 4;
    const std::size_t block_bytes = row_bytes * 16;
    zero_sums<Groups>();
    for (std::int64_t block = 0; block < kNumbersAhead; ++block) read_numbers(task, block, kept[block]);
    for (std::int64_t block = 0; block < task.blocks + kLag; ++block) {
      if (block < task.blocks) {
        read_numbers(task, block + kNumbersAhead, kept[(block + kNumbersAhead) % kRing]);
        std::byte* to = unpacked[kIsUnpacked ? 0 : block % kRing];
        weights[block % kRing] = unpack(task, block, kept[block % kRing], to);
      }
      const std::int64_t ready = block - kLag;
      if (ready < 0) continue;
      const std::byte* x[Groups];
      for (int g = 0; g < Groups; ++g)
        x[g] = task.input + static_cast<std::size_t>(g) * task.input_stride +
               static_cast<std::size_t>(ready) * block_bytes;
      multiply<Groups>(weights[ready % kRing], x, row_bytes);
    }
    alignas(kCacheLine) sum_tiles sums;
    if (task.rows_per_group == 1) return write_row(task, sums);
    store_sums<Groups>(sums);
    write(task, 0, sums);
  }

  /// Tiles one row wide, stored without gaps, are that row.
  static void write_row(const matmul_task& task, sum_tiles& sums) {
    Tiles::template store<0>(reinterpret_cast<std::byte*>(sums[0]), sizeof(float));
    Tiles::template store<1>(reinterpret_cast<std::byte*>(sums[0] + kTileOutputs), sizeof(float));
    std::memcpy(task.out, sums[0], static_cast<std::size_t>(task.outputs) * sizeof(float));
  }

  /// Blocks of one chunk times two groups of rows, or one at the end.
  template <int Groups>
  static void add_chunk(const std::byte* const (&weights)[kChunkBlocks], std::int64_t first, std::int64_t count,
                        const matmul_task& task, std::int32_t group, sum_tiles& sums) {
    constexpr std::size_t kBlockBytes = kTileBytes;
    const std::byte* x[Groups];
    for (int g = 0; g < Groups; ++g)
      x[g] = task.input + static_cast<std::size_t>(group + g) * task.input_stride +
             static_cast<std::size_t>(first) * kBlockBytes;
    if (first == 0) {
      zero_sums<Groups>();
    } else {
      load_sums<Groups>(sums);
    }
    for (std::int64_t block = 0; block < count; ++block) {
      multiply<Groups>(weights[block], x, kTileRowBytes);
      for (int g = 0; g < Groups; ++g) x[g] += kBlockBytes;
    }
    store_sums<Groups>(sums);
  }

  static void run_many(const matmul_task& task) {
    alignas(kCacheLine) sum_tiles sums[kMaxPanelRows / kFewRows];
    alignas(kCacheLine) std::byte unpacked[kIsUnpacked ? 1 : kChunkBlocks][kPanelBlockBytes];
    numbers kept[kChunkBlocks];
    const std::byte* weights[kChunkBlocks];
    const std::int32_t groups = (task.rows + kColumnRows - 1) / kColumnRows;
    for (std::int64_t first = 0; first < task.blocks; first += kChunkBlocks) {
      const std::int64_t count = std::min(kChunkBlocks, task.blocks - first);
      for (std::int64_t i = 0; i < count; ++i) read_numbers(task, first + i, kept[i]);
      for (std::int64_t i = 0; i < count; ++i)
        weights[i] = unpack(task, first + i, kept[i], unpacked[kIsUnpacked ? 0 : i]);
      std::int32_t group = 0;
      for (; group + 2 <= groups; group += 2) add_chunk<2>(weights, first, count, task, group, sums[group / 2]);
      if (group < groups) add_chunk<1>(weights, first, count, task, group, sums[group / 2]);
    }
    for (std::int32_t row = 0; row < task.rows; row += kFewRows) write(task, row, sums[row / kFewRows]);
  }

  static void run(const matmul_task& task) {
    TANDEM_ASSERT(task.rows <= kMaxPanelRows &&
                  (task.rows <= task.rows_per_group || task.rows_per_group == kColumnRows));
    Tiles::load_shapes(shapes_of(task));
    if (task.rows <= kColumnRows) return run_few<1>(task);
    if (task.rows <= kFewRows) return run_few<2>(task);
    run_many(task);
  }
};

/// What AMX adds to `table`.
template <class Tiles, class Unpack>
kernel_table with_panels(kernel_table table) {
  const auto set = [&]<packed_format Format>() {
    table.matmul[static_cast<std::size_t>(Format)] = &panel_matmul<Tiles, Unpack, Format>::run;
  };
  set.template operator()<packed_format::panel_nibble_half>();
  set.template operator()<packed_format::panel_nibble_half_min>();
  set.template operator()<packed_format::panel_nibble_super_min>();
  set.template operator()<packed_format::panel_byte_half>();
  set.template operator()<packed_format::panel_byte_half_min>();
  set.template operator()<packed_format::panel_byte_super_min>();
  set.template operator()<packed_format::panel_six_super16>();
  set.template operator()<packed_format::panel_bf16>();
  table.release = &Tiles::release;
  return table;
}

}  // namespace
}  // namespace tandem::gpu::host

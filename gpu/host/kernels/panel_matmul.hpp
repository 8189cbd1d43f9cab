#pragma once
/// panel_matmul: every panel format with AMX, for every row count (docs/decisions/0020).
///
/// Computes:   out[m][n] = Σ_k x[m][k]·w[n][k], x and w rounded to bf16, sums in fp32.
/// Shapes and layout: panel as gpu/host/packed_layout.hpp says, inputs as bf16_columns. Weights are the left operand
///             (16 outputs × 32 inputs), inputs the right one (32 inputs × up to 16 rows), so sums come out as
///             outputs × rows.
/// Mapping:    2 × 16 outputs. Up to 32 rows: each block is unpacked into level-1 cache and multiplied while the
///             next one is unpacked. More rows: kChunkBlocks blocks are unpacked and stay in level 1
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
      unpack_block<Unpack, Format>(plane, of_block, to);
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

  /// Where the task wants its sums, or `own`.
  static sum_tiles* sums_of(const matmul_task& task, sum_tiles* own) {
    return task.sums == nullptr ? own : reinterpret_cast<sum_tiles*>(task.sums);
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

  /// Inputs of one block of `Groups` groups.
  template <int Groups>
  struct inputs {
    inputs(const matmul_task& task, std::int32_t group, std::int64_t block)
        : row_bytes(static_cast<std::size_t>(task.rows_per_group) * sizeof(float)) {
      for (int g = 0; g < Groups; ++g)
        x[g] = task.input + static_cast<std::size_t>(group + g) * task.input_stride +
               static_cast<std::size_t>(block) * row_bytes * kTileRows;
    }
    void advance() {
      for (const std::byte*& at : x) at += row_bytes * kTileRows;
    }
    std::size_t row_bytes;
    const std::byte* x[Groups];
  };

  /// One block of weights times one of each group's inputs.
  template <int Groups>
  static void multiply(const std::byte* weights, const inputs<Groups>& in) {
    Tiles::template load<kWeights>(weights, kTileRowBytes);
    Tiles::template load<kInputs>(in.x[0], in.row_bytes);
    Tiles::template dot_bf16<0, kWeights, kInputs>();
    Tiles::template load<kWeights + 1>(weights + kTileBytes, kTileRowBytes);
    Tiles::template dot_bf16<1, kWeights + 1, kInputs>();
    if constexpr (Groups == 1) return;
    Tiles::template load<kInputs + 1>(in.x[Groups - 1], in.row_bytes);
    Tiles::template dot_bf16<2, kWeights, kInputs + 1>();
    Tiles::template dot_bf16<3, kWeights + 1, kInputs + 1>();
  }

  /// Unpacks a block to `to` and multiplies the one before it, which is in `ready`, a piece of this after each quarter
  /// of that: tile instructions in a row would have the vector units wait, and the other way round.
  template <int Groups>
  static void unpack_and_multiply(const std::byte* plane, const numbers& of_block, std::byte* to,
                                  const std::byte* ready, const inputs<Groups>& in) {
    Unpack::template unpack_quarter<Format, 0>(plane, of_block, to);
    Tiles::template load<kWeights>(ready, kTileRowBytes);
    Tiles::template load<kInputs>(in.x[0], in.row_bytes);
    Unpack::template unpack_quarter<Format, 1>(plane, of_block, to);
    Tiles::template dot_bf16<0, kWeights, kInputs>();
    if constexpr (Groups == 2) Tiles::template load<kInputs + 1>(in.x[1], in.row_bytes);
    if constexpr (Groups == 2) Tiles::template dot_bf16<2, kWeights, kInputs + 1>();
    Unpack::template unpack_quarter<Format, 2>(plane, of_block, to);
    Tiles::template load<kWeights + 1>(ready + kTileBytes, kTileRowBytes);
    Unpack::template unpack_quarter<Format, 3>(plane, of_block, to);
    Tiles::template dot_bf16<1, kWeights + 1, kInputs>();
    if constexpr (Groups == 2) Tiles::template dot_bf16<3, kWeights + 1, kInputs + 1>();
  }

  template <int Groups>
  static void add_packed(const matmul_task& task) {
    alignas(kCacheLine) std::byte unpacked[kRing][kPanelBlockBytes];
    numbers kept[kRing];
    for (std::int64_t block = 0; block <= kNumbersAhead; ++block) read_numbers(task, block, kept[block]);
    unpack(task, 0, kept[0], unpacked[0]);
    for (std::int64_t block = 1; block < task.blocks; ++block) {
      read_numbers(task, block + kNumbersAhead, kept[(block + kNumbersAhead) % kRing]);
      unpack_and_multiply<Groups>(plane_of(task, block), kept[block % kRing], unpacked[block % kRing],
                                  unpacked[(block - 1) % kRing], inputs<Groups>(task, 0, block - 1));
    }
    multiply<Groups>(unpacked[(task.blocks - 1) % kRing], inputs<Groups>(task, 0, task.blocks - 1));
  }

  template <int Groups>
  static void add_unpacked(const matmul_task& task) {
    for (std::int64_t block = 0; block < task.blocks; ++block)
      multiply<Groups>(unpack(task, block, {}, nullptr), inputs<Groups>(task, 0, block));
  }

  template <int Groups>
  static void run_few(const matmul_task& task) {
    zero_sums<Groups>();
    if constexpr (kIsUnpacked) {
      add_unpacked<Groups>(task);
    } else {
      add_packed<Groups>(task);
    }
    alignas(kCacheLine) sum_tiles own;
    sum_tiles& sums = *sums_of(task, &own);
    if (task.rows_per_group == 1) return store_row(task, sums);
    store_sums<Groups>(sums);
    if (task.sums == nullptr) write(task, 0, sums);
  }

  /// Tiles one row wide, stored without gaps, are that row.
  static void store_row(const matmul_task& task, sum_tiles& sums) {
    Tiles::template store<0>(reinterpret_cast<std::byte*>(sums[0]), sizeof(float));
    Tiles::template store<1>(reinterpret_cast<std::byte*>(sums[0] + kTileOutputs), sizeof(float));
    if (task.sums != nullptr) return;
    std::memcpy(task.out, sums[0], static_cast<std::size_t>(task.outputs) * sizeof(float));
  }

  /// Blocks of one chunk times two groups of rows, or one at the end.
  template <int Groups>
  static void add_chunk(const std::byte* const (&weights)[kChunkBlocks], std::int64_t first, std::int64_t count,
                        const matmul_task& task, std::int32_t group, sum_tiles& sums) {
    inputs<Groups> in(task, group, first);
    if (first == 0) {
      zero_sums<Groups>();
    } else {
      load_sums<Groups>(sums);
    }
    for (std::int64_t block = 0; block < count; ++block) {
      multiply<Groups>(weights[block], in);
      in.advance();
    }
    store_sums<Groups>(sums);
  }

  /// Before a task writes, it fetches the lines it will write to, a part of each two groups' rows with every chunk:
  /// all at once they would wait for each other.
  static void fetch_outputs(const matmul_task& task, std::int32_t group, std::int64_t first_block) {
    if (task.sums != nullptr) return;
    const std::int64_t chunks = (task.blocks + kChunkBlocks - 1) / kChunkBlocks;
    const std::int64_t share = (kFewRows + chunks - 1) / chunks;
    const std::int64_t begin = first_block / kChunkBlocks * share;
    const std::int64_t row = std::int64_t{group} * kColumnRows;
    const std::int64_t end = std::min({begin + share, std::int64_t{kFewRows}, task.rows - row});
    for (std::int64_t r = begin; r < end; ++r) {
      const float* out = task.out + (row + r) * task.out_stride;
      Unpack::prefetch_to_write(out);
      Unpack::prefetch_to_write(out + task.outputs - 1);
    }
  }

  static void add_rows(const std::byte* const (&weights)[kChunkBlocks], std::int64_t first, std::int64_t count,
                       const matmul_task& task, sum_tiles* sums) {
    const std::int32_t groups = (task.rows + kColumnRows - 1) / kColumnRows;
    for (std::int32_t group = 0; group < groups; group += 2) {
      fetch_outputs(task, group, first);
      if (group + 2 <= groups) {
        add_chunk<2>(weights, first, count, task, group, sums[group / 2]);
      } else {
        add_chunk<1>(weights, first, count, task, group, sums[group / 2]);
      }
    }
  }

  static void run_many(const matmul_task& task) {
    alignas(kCacheLine) sum_tiles own[kMaxPanelRows / kFewRows];
    alignas(kCacheLine) std::byte unpacked[kIsUnpacked ? 1 : kChunkBlocks][kPanelBlockBytes];
    numbers kept[kChunkBlocks];
    const std::byte* weights[kChunkBlocks];
    sum_tiles* sums = sums_of(task, own);
    for (std::int64_t first = 0; first < task.blocks; first += kChunkBlocks) {
      const std::int64_t count = std::min(kChunkBlocks, task.blocks - first);
      for (std::int64_t i = 0; i < count; ++i) read_numbers(task, first + i, kept[i]);
      for (std::int64_t i = 0; i < count; ++i)
        weights[i] = unpack(task, first + i, kept[i], unpacked[kIsUnpacked ? 0 : i]);
      add_rows(weights, first, count, task, sums);
    }
    if (task.sums != nullptr) return;
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

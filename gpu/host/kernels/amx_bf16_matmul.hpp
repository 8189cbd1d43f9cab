#pragma once
/// amx_bf16_matmul: bf16 weights and inputs with AMX, for every row count.
///
/// Computes:   out[m][n] = Σ_k x[m][k]·w[n][k] with fp32 sums.
/// Shapes and layout: tile as gpu/host/packed_layout.hpp says: 16 of its rows (32 inputs) are a weight tile as AMX reads
///             it. Any number of columns; the last tile is narrower.
/// Mapping:    16 rows × 16 outputs per sum tile, up to 4 of them share each loaded weight tile; inputs ascending, 32 a
///             step. Fewer than 16 rows: shorter tiles. A rest of rows is computed with the last 16 (amx_groups.hpp).
/// Requires:   Tiles: AMX-TILE and AMX-BF16, or an emulation.
/// Cost:       16 cycles per 1 KiB of weights and up to 16 rows, whatever their number.
/// Accuracy:   per 32 inputs the even and the odd products are summed in fp32, then added, then added to the total;
///             error ≤ (columns/2 + 2) · 2^-24 of Σ|x·w|. Denormals count as zero and become zero. Bits differ from
///             those of vdpbf16ps, which is why one row runs here as well.
/// Tested by:  tests/gpu/kernels/amx_*_test.cpp.

#include <cstddef>
#include <cstdint>

#include "gpu/host/kernels/amx_groups.hpp"
#include "gpu/host/kernels/row_groups.hpp"

namespace tandem::gpu::host {
namespace {

template <class Tiles, class V>
struct amx_bf16_matmul {
  static constexpr int kMaxGroups = 4;  // sum tiles
  static constexpr int kInput = 4;
  static constexpr int kWeights = 5;
  static constexpr int kLastInput = 6;
  static constexpr int kLastWeights = 7;
  static constexpr std::int64_t kPairs = 16;  // of inputs in a step
  static constexpr std::size_t kStepBytes = 1024;
  static constexpr std::size_t kPrefetchAhead = 4096;  // see int8_matmul

  static tile_shapes shapes_of(const matmul_task& task) {
    const int rows = std::min(task.rows, kTileRows);
    const auto last = static_cast<int>(task.blocks % kPairs);
    tile_shapes shapes;
    for (int group = 0; group < kMaxGroups; ++group) shapes.set(group, rows, kTileRowBytes);
    shapes.set(kInput, rows, kTileRowBytes);
    shapes.set(kWeights, kTileRows, kTileRowBytes);
    if (last == 0) return shapes;
    shapes.set(kLastInput, rows, static_cast<std::size_t>(last) * 4);
    shapes.set(kLastWeights, last, kTileRowBytes);
    return shapes;
  }

  /// Calls `step` with the numbers of the groups as constants.
  template <int Groups, class Step>
  static void for_groups(const Step& step) {
    step.template operator()<0>();
    if constexpr (Groups > 1) step.template operator()<1>();
    if constexpr (Groups > 2) step.template operator()<2>();
    if constexpr (Groups > 3) step.template operator()<3>();
  }

  template <int Groups, int Input, int Weights>
  static void add_step(const std::byte* weights, const std::byte* const (&x)[Groups], std::size_t at,
                       std::size_t stride) {
    Tiles::template load<Weights>(weights, kTileRowBytes);
    for_groups<Groups>([&]<int Group>() {
      Tiles::template load<Input>(x[Group] + at, stride);
      Tiles::template dot_bf16<Group, Input, Weights>();
    });
  }

  /// Writes the sums of group `Group`, whose first row is `row`.
  template <int Group>
  static void write(const matmul_task& task, std::int32_t row) {
    if (task.outputs == kTileOutputs) {
      auto* out = reinterpret_cast<std::byte*>(task.out + row * task.out_stride);
      return Tiles::template store<Group>(out, static_cast<std::size_t>(task.out_stride) * sizeof(float));
    }
    alignas(kCacheLine) float sums[kTileRows][kTileOutputs];
    Tiles::template store<Group>(reinterpret_cast<std::byte*>(sums), kTileRowBytes);
    const int rows = std::min(task.rows, kTileRows);
    for (int r = 0; r < rows; ++r) {
      float* out = task.out + (row + r) * task.out_stride;
      for (int n = 0; n < task.outputs; ++n) out[n] = sums[r][n];
    }
  }

  template <int Groups>
  static void multiply_groups(const matmul_task& task, std::int32_t first_group) {
    std::int32_t rows[Groups];
    const std::byte* x[Groups];
    for (int g = 0; g < Groups; ++g) {
      rows[g] = task.rows < kTileRows ? 0 : first_row_of(first_group + g, task.rows);
      x[g] = input_row(task, rows[g]);
    }
    for_groups<Groups>([]<int Group>() { Tiles::template zero<Group>(); });
    const std::byte* weights = task.tile;
    std::size_t at = 0;
    std::int64_t left = task.blocks;
    for (; left >= kPairs; left -= kPairs, weights += kStepBytes, at += kTileRowBytes) {
      V::template prefetch<kStepBytes>(weights + kPrefetchAhead);
      add_step<Groups, kInput, kWeights>(weights, x, at, task.input_stride);
    }
    if (left > 0) add_step<Groups, kLastInput, kLastWeights>(weights, x, at, task.input_stride);
    for_groups<Groups>([&]<int Group>() { write<Group>(task, rows[Group]); });
  }

  static void run(const matmul_task& task) {
    const std::int32_t groups = (task.rows + kTileRows - 1) / kTileRows;
    Tiles::load_shapes(shapes_of(task));
    std::int32_t group = 0;
    for (; groups - group >= kMaxGroups; group += kMaxGroups) multiply_groups<kMaxGroups>(task, group);
    if (groups - group == 3) multiply_groups<3>(task, group);
    if (groups - group == 2) multiply_groups<2>(task, group);
    if (groups - group == 1) multiply_groups<1>(task, group);
  }
};

}  // namespace
}  // namespace tandem::gpu::host

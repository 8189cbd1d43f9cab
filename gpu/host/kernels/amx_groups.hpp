#pragma once
/// How an AMX kernel walks the input rows of one tile: 16 at a time. A rest after the first 16 may be computed by a
/// group that reaches back over rows that are done already: they get the same bits again.

#include <algorithm>
#include <cstdint>

#include "gpu/host/kernels/kernel_table.hpp"
#include "gpu/host/kernels/tile_shapes.hpp"

namespace tandem::gpu::host {
namespace {

/// First row of the `group`-th group of 16 among `rows` ≥ 16 rows.
inline std::int32_t first_row_of(std::int32_t group, std::int32_t rows) {
  return std::min(group * kTileRows, rows - kTileRows);
}

/// Where row `row` of the task's input lies.
inline const std::byte* input_row(const matmul_task& task, std::int32_t row) {
  return task.input + static_cast<std::size_t>(row) * task.input_stride;
}

/// The task's rows from `row` on.
inline matmul_task rows_from(const matmul_task& task, std::int32_t row) {
  matmul_task rest = task;
  rest.input = input_row(task, row);
  rest.out = task.out + row * task.out_stride;
  rest.rows = task.rows - row;
  return rest;
}

}  // namespace
}  // namespace tandem::gpu::host

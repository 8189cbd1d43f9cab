#pragma once
/// How a kernel walks the input rows of one tile: groups as large as its registers hold, then the rest in one smaller
/// group. The group size changes how often weights are unpacked, never the order of a row's sums.
///
/// Everything in the headers of this folder that kernels include has internal linkage: each instruction set compiles
/// its own copy, and the linker must not pick one machine's code for another.

#include <cstddef>
#include <cstdint>

#include "gpu/host/kernels/kernel_table.hpp"

#if defined(__clang__)
#define TANDEM_UNROLL _Pragma("unroll")
#else
#define TANDEM_UNROLL _Pragma("GCC unroll 16")
#endif

/// For parts of an inner loop that pass vectors by reference: a call would put them into memory.
#define TANDEM_INLINE __attribute__((always_inline))

namespace tandem::gpu::host {
namespace {

template <class Operation, int Rows>
void run_rest(const matmul_task& task, std::int32_t row) {
  if constexpr (Rows > 0) {
    if (task.rows - row == Rows) return Operation::template run<Rows>(task, row);
    run_rest<Operation, Rows - 1>(task, row);
  }
}

template <class Operation>
void run_groups(const matmul_task& task) {
  std::int32_t row = 0;
  for (; task.rows - row >= Operation::kMaxRows; row += Operation::kMaxRows) {
    Operation::template run<Operation::kMaxRows>(task, row);
  }
  run_rest<Operation, Operation::kMaxRows - 1>(task, row);
}

/// Writes lanes [first, first + kLanes) of a row's 16 sums, as far as the tile has outputs.
template <class V>
void store_outputs(const matmul_task& task, std::int32_t row, int first, typename V::floats sums) {
  float* out = task.out + row * task.out_stride + first;
  const std::int32_t count = task.outputs - first;
  if (count >= V::kLanes) return V::store(out, sums);
  float all[V::kLanes];
  V::store(all, sums);
  for (std::int32_t n = 0; n < count; ++n) out[n] = all[n];
}

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// Fills a kernel_table for the lanes `V` of one instruction set.

#include "gpu/host/kernels/convert_rows.hpp"
#include "gpu/host/kernels/float_matmul.hpp"
#include "gpu/host/kernels/int8_matmul.hpp"

namespace tandem::gpu::host {
namespace {

/// `Dots`: how its products are summed, one of block_dots.hpp.
template <class V, template <class, class> class Dots>
constexpr kernel_table make_table() {
  kernel_table table{};
  table.matmul = {
      &run_groups<int8_matmul<V, nibble_half_format, Dots>>,
      &run_groups<int8_matmul<V, nibble_half_min_format, Dots>>,
      &run_groups<int8_matmul<V, nibble_super_min_format, Dots>>,
      &run_groups<int8_matmul<V, byte_half_format, Dots>>,
      &run_groups<int8_matmul<V, byte_half_min_format, Dots>>,
      &run_groups<int8_matmul<V, byte_super_min_format, Dots>>,
      &run_groups<int8_matmul<V, super16_format, Dots>>,
      &run_groups<float_matmul<V, bf16_step>>,
      &run_groups<float_matmul<V, fp32_step>>,
  };
  table.quantize_row = &quantize_row;
  table.quantize_row_pair = &quantize_row_pair;
  table.round_row = &round_row;
  table.round_row_pairs = &round_row_pairs;
  table.interleave = &interleave_pairs;
  return table;
}

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// The kernels of one instruction set, as function pointers: the place where run-time dispatch happens.
/// A new instruction set is one more file that fills a table, and a line in kernels_for().

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/host/packed_layout.hpp"

namespace tandem::gpu::host {

/// Rows of one call for a panel.
inline constexpr std::int32_t kMaxPanelRows = 512;
/// Sums of a panel as its tiles leave them: [group][2 · 16 outputs][16 rows], however few rows the last group has; of
/// rows in groups of one: [32 outputs].
struct alignas(kCacheLine) panel_sums {
  float group[kMaxPanelRows / kColumnRows][kPanelOutputs * kColumnRows];
};

/// One tile or panel times `rows` input rows: out[row · out_stride + n], n < outputs.
struct matmul_task {
  const std::byte* tile;            ///< packed weights, 64-byte aligned
  std::int64_t blocks;              ///< along k
  const std::byte* input;           ///< row 0 of the activations
  std::size_t input_stride;         ///< bytes from row to row; bf16_columns: from group to group
  std::int32_t terms;               ///< 1; 2: int8 rows are pair rows (packed_layout.hpp)
  std::int32_t rows;                ///< ≥ 1
  float* out;                       ///< row 0, first output of the tile
  std::int64_t out_stride;          ///< floats from row to row
  std::int32_t outputs;             ///< 1..outputs_of(format), fewer at a part's end
  std::int32_t rows_per_group = 1;  ///< bf16_columns: rows that share a group
  panel_sums* sums = nullptr;       ///< panels: if set, sums are left here and `out` is not used
};

using matmul_function = void (*)(const matmul_task& task);

struct kernel_table {
  std::array<matmul_function, kPackedFormats> matmul;  ///< indexed by packed_format
  /// Reads `columns` (a multiple of 32) values, writes columns / 32 blocks.
  void (*quantize_row)(const float* input, std::int32_t columns, activation_block* out);
  /// The same in two terms: pair_row_bytes(columns / 32) bytes, laid out as packed_layout.hpp says.
  void (*quantize_row_pair)(const float* input, std::int32_t columns, activation_block* out);
  /// Writes `columns` bf16, and one zero more when columns is odd.
  void (*round_row)(const float* input, std::int32_t columns, std::uint16_t* out);
  /// Rounds to pairs: out[16 b + j] has inputs j and 16 + j of block b. Inputs that the last block lacks are zero.
  void (*round_row_pairs)(const float* input, std::int32_t columns, std::uint32_t* out);
  /// Pairs of `rows` ≤ 16 rows, which are `stride` apart, to out[pair · rows + row], for 16 · blocks pairs.
  void (*interleave)(const std::uint32_t* pairs, std::int64_t stride, std::int32_t rows, std::int64_t blocks,
                     std::uint32_t* out);
  /// Gives back what products leave in the calling thread's registers; to be called after a run of them. May be null.
  void (*release)() = nullptr;
};

const kernel_table& portable_kernels();
#if defined(TANDEM_X86_KERNELS)
const kernel_table& avx2_kernels();
const kernel_table& avx512_kernels();
/// Panels with AMX, everything else with AVX-512. For at most `kMaxPanelRows` rows a call.
const kernel_table& amx_kernels();
#endif
/// The kernels that serve `set`; the machine must offer it.
const kernel_table& kernels_for(isa set);

}  // namespace tandem::gpu::host

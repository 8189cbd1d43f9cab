#pragma once
/// The storage behind activations: rows at a fixed stride, in the form their kernel reads.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {

struct kernel_table;

struct activations::impl {
  activation_kind kind;
  std::int32_t max_rows;
  std::int32_t columns;
  std::size_t stride;   ///< bytes from row (bf16_columns: group) to row, an odd count of units so that rows spread over
                        ///< the sets of a cache
  aligned_bytes bytes;  ///< int8: activation_block[]; bf16: an even number of bf16; fp32: as it is
  std::int32_t rows_per_group = 1;  ///< that share one stride

  // Of bf16_columns. Rows are rounded one by one, by different threads; who rounds the last row of a group interleaves
  // it: rows written straight to their places would have the threads fight for each cache line.
  std::int32_t expected_rows = 0;
  std::size_t pairs_stride = 0;                          ///< pairs from row to row
  aligned_bytes pairs;                                   ///< max_rows rows, rounded up to whole groups
  std::unique_ptr<std::atomic<std::int32_t>[]> missing;  ///< rows of each group

  /// `row` must be the first of a group.
  const std::byte* group_of(std::int32_t row) const {
    return bytes.get() + static_cast<std::size_t>(row / rows_per_group) * stride;
  }
  std::int32_t rows_of(std::int32_t group) const;
  std::uint32_t* pairs_of(std::int32_t row);
  void finish(std::int32_t group, const kernel_table& kernels);
};

}  // namespace tandem::gpu::host

#pragma once
/// The storage behind activations: rows at a fixed stride, in the form their kernel reads.

#include <cstddef>
#include <cstdint>

#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {

struct activations::impl {
  activation_kind kind;
  std::int32_t max_rows;
  std::int32_t columns;
  std::size_t stride;   ///< bytes from row to row, an odd count of units so that rows spread over the sets of a cache
  aligned_bytes bytes;  ///< int8: activation_block[]; bf16: an even number of bf16; fp32: as it is
};

}  // namespace tandem::gpu::host

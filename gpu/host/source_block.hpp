#pragma once
/// Quantised blocks of a model file, read 32 values at a time without rounding anything.
/// Formats: ggml's block quantisation (ggml-common.h of the GGUF specification's reference).

#include <cstddef>
#include <cstdint>

#include "model/model.hpp"

namespace tandem::gpu::host {

/// 32 consecutive inputs. Which fields mean something depends on the kind; all 16-bit fields are fp16 bits.
struct source_block {
  std::uint8_t quants[32];    ///< unsigned; Q5_0 and Q8_0 with the zero point moved to 128
  std::uint16_t scale;        ///< d
  std::uint16_t minimum;      ///< m, or −dmin of a super-block
  std::uint8_t sub_scale;     ///< Q4_K, Q5_K: multiplies d
  std::uint8_t sub_minimum;   ///< Q4_K, Q5_K: multiplies −dmin
  std::int8_t half_scale[2];  ///< Q6_K: multiplies d, for 16 values each
};

/// Block `index` (of 32 values) of the row that starts at `row`. `kind` must be block-quantised.
source_block read_block(model::tensor_kind kind, const std::byte* row, std::int64_t index);

/// Bytes of a row of `columns` values of any kind; columns must be a multiple of the kind's block.
std::size_t row_bytes(model::tensor_kind kind, std::int64_t columns);

}  // namespace tandem::gpu::host

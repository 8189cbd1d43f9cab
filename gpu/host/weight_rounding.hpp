#pragma once
/// Weights rounded to 8 bits while they are packed (--quantization int8).

#include "gpu/host/source_block.hpp"

namespace tandem::gpu::host {

/// computes  32 weights x as q·scale, the way Q8_0 stores them: q whole, −127…127 (kept as q + 128), scale fp16
/// shapes    values[32] of one row → one block
/// mapping   one thread a tile, at load
/// requires  nothing
/// cost      about 40 operations a weight, once
/// accuracy  scale is the smallest fp16 number with 127·scale ≥ max|x|, so nothing saturates: |x − q·scale| ≤ scale / 2,
///           and scale ≤ max|x| / 127 · (1 + 2^-10) + 2^-24. A block with a NaN, an infinity or a magnitude above
///           127 · 65504 has scale NaN: it poisons its outputs instead of being wrong in silence.
/// tested by tests/gpu/kernels/weight_rounding_test.cpp
source_block round_block(const float* values);

}  // namespace tandem::gpu::host

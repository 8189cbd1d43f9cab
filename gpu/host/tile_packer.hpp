#pragma once
/// Writes one tile of a packed matrix and reads rows back out of it.

#include <cstddef>
#include <cstdint>

#include "gpu/host/packed_layout.hpp"
#include "model/model.hpp"

namespace tandem::gpu::host {

/// The format that keeps `kind` as the file has it (f16 becomes bf16).
packed_format native_format(model::tensor_kind kind);

/// Packs rows [first_row, first_row + outputs_of(format)) of `weight`, fewer at its end, into `tile` of
/// tile_bytes(format, columns). `format` is native_format(kind), bf16, fp32, or for f32, f16 and bf16 also byte_half,
/// for which they are rounded; or the panel of one of these. False: a block is too large for the scale it would need,
/// and became NaN.
bool pack_tile(packed_format format, const model::tensor& weight, std::int64_t first_row, std::byte* tile);

/// Output `lane` of a tile as numbers: exactly what the kernels multiply with, but for panels before they are rounded
/// to bf16.
void unpack_row(packed_format format, const std::byte* tile, std::int32_t lane, std::int64_t columns, float* out);

}  // namespace tandem::gpu::host

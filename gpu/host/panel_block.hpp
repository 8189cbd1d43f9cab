#pragma once
/// One block of one output of a panel (packed_layout.hpp): written at load, read back for embeddings and tests.

#include <cstddef>
#include <cstdint>

#include "gpu/host/packed_layout.hpp"
#include "gpu/host/source_block.hpp"

namespace tandem::gpu::host {

/// The format's header and plane must be zero where the block goes. `in_unit`: the block's number within its unit.
void put_panel_block(packed_format format, const source_block& block, std::size_t output, std::size_t in_unit,
                     std::byte* header, std::byte* plane);

/// The numbers before they are rounded to bf16.
void read_panel_block(packed_format format, const std::byte* header, const std::byte* plane, std::size_t output,
                      std::size_t in_unit, float (&out)[kBlockInputs]);

}  // namespace tandem::gpu::host

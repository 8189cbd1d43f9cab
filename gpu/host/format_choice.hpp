#pragma once
/// Which packed format and which form of inputs a tensor gets.

#include <span>

#include "gpu/host/packed_layout.hpp"
#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {

/// One input form for all parts of a matrix: the most precise one any of them needs.
activation_kind common_input(std::span<const model::tensor* const> weights, packing how, isa set);

/// The format of a part of a matrix whose inputs come as `input`.
packed_format part_format(const model::tensor& weight, packing how, isa set, activation_kind input);

}  // namespace tandem::gpu::host

#pragma once
/// Attention in plain double precision: what every kernel is tested against.

#include <cstdint>
#include <vector>

namespace tandem::gpu::reference {

/// One query over `visible` keys and values, row-major [position][head_dim]; out[head_dim] = softmax(q·Kᵀ·scale)·V.
std::vector<double> attention_reference(const std::vector<double>& query, const std::vector<std::vector<double>>& keys,
                                        const std::vector<std::vector<double>>& values, std::int32_t visible,
                                        double scale);

}  // namespace tandem::gpu::reference

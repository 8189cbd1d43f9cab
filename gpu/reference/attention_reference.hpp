#pragma once
/// Attention in plain double precision: what every kernel is tested against.

#include <cstdint>
#include <vector>

namespace tandem::gpu::reference {

/// One query over `visible` keys and values, row-major [position][head_dim]; out[head_dim] = softmax(q·Kᵀ·scale)·V.
std::vector<double> attention_reference(const std::vector<double>& query, const std::vector<std::vector<double>>& keys,
                                        const std::vector<std::vector<double>>& values, std::int32_t visible,
                                        double scale);

/// What is left of a key or value that was stored as int8 with one scale: round(x · 127 / largest) · largest / 127, the
/// quotients in fp32 as the cache computes them, ties to even. All NaN when one number is not finite.
std::vector<double> int8_round_trip(const std::vector<float>& numbers);

}  // namespace tandem::gpu::reference

#pragma once
/// What every matmul kernel is tested against.

#include <cstdint>
#include <span>

namespace tandem::gpu::reference {

/// out[row · outputs + n] = Σ_k x[row · inputs + k] · weights[n · inputs + k], in double precision and ascending k.
/// `magnitude`, of the same shape, gets Σ_k |x · w|: what a bound on rounding errors is stated in.
void matmul_reference(std::span<const float> x, std::span<const float> weights, std::int64_t inputs,
                      std::span<double> out, std::span<double> magnitude);

}  // namespace tandem::gpu::reference

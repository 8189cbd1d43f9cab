#pragma once
/// Operations on one row of activations or one head, once per instruction set.

#include <cstdint>

#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {

/// computes: see each member. shapes: plain fp32 arrays, any length; nothing overlaps unless said. mapping: one call
/// per row, callers split rows over threads. requires: nothing of alignment. cost: memory or L1 bound. accuracy: a few
/// ulp; the order of every sum depends on the length only. tested by: tests/gpu/row_ops_test.cpp.
struct row_ops {
  /// hidden[i] += delta[i] + bias[i] (each may be null), then out[i] = hidden[i] / rms(hidden) · weight[i].
  void (*add_and_normalize)(float* hidden, const float* delta, const float* bias, const float* weight, float epsilon,
                            std::int32_t count, float* out);
  /// out[i] = silu(gate_up[i]) · gate_up[count + i].
  void (*gate)(const float* gate_up, std::int32_t count, float* out);
  /// The same from the sums of two panels, [32 outputs][stride] each, stride 1 or 16, for `rows` ≤ stride rows:
  /// out[j · rows + r] is row r of outputs j and 16 + j, rounded to bf16 (bf16_columns in packed_matrix.hpp).
  void (*gate_sums)(const float* gate, const float* up, std::int32_t stride, std::int32_t rows, std::uint32_t* out);
  /// values[i] += bias[i].
  void (*add)(float* values, const float* bias, std::int32_t count);
  /// Rotates pairs (i, i + pairs) of `head` in place, or (2i, 2i + 1) when interleaved.
  void (*rotate)(float* head, const float* cosines, const float* sines, std::int32_t pairs, bool interleaved);
};

const row_ops& row_ops_portable();
#if defined(__x86_64__)
const row_ops& row_ops_avx2();
const row_ops& row_ops_avx512();
#endif
/// The table for `set`.
const row_ops& row_ops_for(isa set);

}  // namespace tandem::gpu::host

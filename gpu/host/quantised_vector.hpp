#pragma once
/// Rounding of one key or value to int8 with a scale of its own.

#include <cstdint>

namespace tandem::gpu::host {

/// computes: to[i · to_stride] = round(from[i] · 127 / largest), ties to even, where largest = max |from|; gives the
/// scale largest / 127. shapes: count numbers. mapping: one call per token, head and side. requires: nothing. cost: two
/// passes over `from`. accuracy: |q · scale - from| ≤ 0.501 · scale (rounding
/// may carry the largest float itself to infinity). A vector that has a NaN or an infinity is zeros
/// with the scale NaN: whoever sees the token becomes NaN, nobody else. One whose largest number is below 1e-30 is
/// zeros with the scale 0. tested by: tests/gpu/kv_cache_test.cpp.
float quantise_vector(const float* from, std::int32_t count, std::int8_t* to, std::int64_t to_stride);

}  // namespace tandem::gpu::host

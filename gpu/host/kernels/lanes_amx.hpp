#pragma once
/// What the AMX kernels ask of vectors beyond lanes_avx512: moving weight tiles and integer sums through memory.

#include "gpu/host/kernels/lanes_avx512.hpp"

namespace tandem::gpu::host {
namespace {

struct lanes_amx : lanes_avx512 {
  static void store_bytes(std::byte* to, bytes values) { _mm512_store_si512(to, values); }
  static ints load_ints(const std::int32_t* from) { return _mm512_load_si512(from); }
  /// quants − (1 << ZeroBits), as int8.
  template <int ZeroBits>
  static bytes without_zero(bytes quants) {
    return _mm512_sub_epi8(quants, _mm512_set1_epi8(static_cast<char>(1 << ZeroBits)));
  }
};

}  // namespace
}  // namespace tandem::gpu::host

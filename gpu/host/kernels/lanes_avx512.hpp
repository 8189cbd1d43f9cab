#pragma once
/// 16 lanes in one register: AVX-512 F, BW, DQ, VL, VNNI, BF16. Operations: see lanes_portable.hpp.

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/host/kernels/row_groups.hpp"

namespace tandem::gpu::host {
namespace {

struct lanes_avx512 {
  static constexpr int kLanes = 16;
  static constexpr int kInt8Rows = 8;  // 8 sums, 8 dots, 8 rows of quants, scale and minimum: 26 of 32 registers
  static constexpr int kFloatRows = 8;
  static constexpr bool kFullBytesAreSigned = false;
  static constexpr bool kQuadsTogether = false;

  using bytes = __m512i;
  using ints = __m512i;
  using floats = __m512;
  using bf16_pairs = __m512i;

  static ints zero_ints() { return _mm512_setzero_si512(); }
  static floats zero_floats() { return _mm512_setzero_ps(); }
  static ints broadcast(std::int32_t value) { return _mm512_set1_epi32(value); }
  static floats broadcast(float value) { return _mm512_set1_ps(value); }

  /// Asks for `Bytes` bytes ahead of use. May point anywhere.
  template <std::size_t Bytes>
  static void prefetch(const std::byte* at) {
    TANDEM_UNROLL
    for (std::size_t line = 0; line < Bytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at + line), _MM_HINT_T0);
  }

  static bytes load_bytes(const std::byte* from) { return _mm512_load_si512(from); }
  static floats load_floats(const std::byte* from) { return _mm512_load_ps(from); }
  static bf16_pairs load_pairs(const std::byte* from) { return _mm512_load_si512(from); }
  static floats load_half(const std::byte* from) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static floats load_unsigned(const std::byte* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static floats load_signed(const std::byte* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(from))));
  }

  static bytes low_nibbles(bytes both) { return _mm512_and_si512(both, _mm512_set1_epi8(15)); }
  static bytes high_nibbles(bytes both) { return low_nibbles(_mm512_srli_epi16(both, 4)); }
  template <int Index>
  static bytes with_pair(bytes low, bytes pairs) {
    bytes moved = pairs;
    if constexpr (Index < 2) moved = _mm512_slli_epi16(pairs, 4 - 2 * Index);
    if constexpr (Index > 2) moved = _mm512_srli_epi16(pairs, 2);
    constexpr int kMaskedOr = 0xEA;  // (moved & mask) | low, as a truth table
    return _mm512_ternarylogic_epi64(moved, _mm512_set1_epi8(0x30), low, kMaskedOr);
  }

  static ints dot(ints sum, bytes quants, const std::int8_t* x) {
    std::int32_t quad = 0;
    std::memcpy(&quad, x, sizeof quad);
    return _mm512_dpbusd_epi32(sum, quants, _mm512_set1_epi32(quad));
  }
  template <int Bits>
  static ints shift_left(ints value) {
    return _mm512_slli_epi32(value, Bits);
  }
  static floats to_floats(ints value) { return _mm512_cvtepi32_ps(value); }

  static floats add(floats a, floats b) { return _mm512_add_ps(a, b); }
  static floats multiply(floats a, floats b) { return _mm512_mul_ps(a, b); }
  static floats fused(floats a, floats b, floats sum) { return _mm512_fmadd_ps(a, b, sum); }
  static floats multiply_add(floats a, floats b, floats sum) { return _mm512_fmadd_ps(a, b, sum); }
  static floats pair_dot(floats sum, bf16_pairs pairs, std::uint32_t x) {
    const __m512i both = _mm512_set1_epi32(std::bit_cast<std::int32_t>(x));
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(pairs), reinterpret_cast<__m512bh>(both));
  }
  static void store(float* to, floats values) { _mm512_storeu_ps(to, values); }
};

}  // namespace
}  // namespace tandem::gpu::host

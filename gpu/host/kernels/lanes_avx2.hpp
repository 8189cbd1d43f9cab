#pragma once
/// 8 lanes in one register, a tile in two passes: AVX2, FMA, F16C. Operations: see lanes_portable.hpp.

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/host/kernels/row_groups.hpp"

namespace tandem::gpu::host {
namespace {

struct lanes_avx2 {
  static constexpr int kLanes = 8;
  static constexpr int kInt8Rows = 4;  // 8 sums of pairs, a quad of weights, inputs and a product: 12 of 16 registers
  static constexpr int kFloatRows = 4;
  /// Products of full unsigned bytes would overflow the 16-bit pairs of vpmaddubsw; signed ones (≤ 2·128·127) fit.
  static constexpr bool kFullBytesAreSigned = true;

  using bytes = __m256i;
  using ints = __m256i;
  using floats = __m256;
  using bf16_pairs = __m256i;

  static ints zero_ints() { return _mm256_setzero_si256(); }
  static floats zero_floats() { return _mm256_setzero_ps(); }
  static ints broadcast(std::int32_t value) { return _mm256_set1_epi32(value); }
  static floats broadcast(float value) { return _mm256_set1_ps(value); }

  template <std::size_t Bytes>
  static void prefetch(const std::byte* at) {
    TANDEM_UNROLL
    for (std::size_t line = 0; line < Bytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(at + line), _MM_HINT_T0);
  }

  static bytes load_bytes(const std::byte* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }
  static floats load_floats(const std::byte* from) { return _mm256_load_ps(reinterpret_cast<const float*>(from)); }
  static bf16_pairs load_pairs(const std::byte* from) { return load_bytes(from); }
  static floats load_half(const std::byte* from) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static floats load_unsigned(const std::byte* from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static floats load_signed(const std::byte* from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }

  static bytes low_nibbles(bytes both) { return _mm256_and_si256(both, _mm256_set1_epi8(15)); }
  static bytes high_nibbles(bytes both) { return low_nibbles(_mm256_srli_epi16(both, 4)); }
  template <int Index>
  static bytes with_pair(bytes low, bytes pairs) {
    bytes moved = pairs;
    if constexpr (Index < 2) moved = _mm256_slli_epi16(pairs, 4 - 2 * Index);
    if constexpr (Index > 2) moved = _mm256_srli_epi16(pairs, 2);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
  }

  /// 16-bit sums of two products each.
  using pairs = __m256i;
  /// Added where it is written: the compiler would keep all products of a block first, in more registers than there
  /// are.
  static pairs add_pairs(pairs a, pairs b) {
    pairs sum = _mm256_add_epi16(a, b);
    asm volatile("" : "+x"(sum));
    return sum;
  }
  static ints add_widened(ints sum, pairs sums) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
  }
  /// Quads whose pairs add up in 16 bits without overflow; a power of two.
  template <int QuantBits>
  static constexpr int quads_in_16_bits() {
    constexpr int kLargestPair = 2 * 127 * (QuantBits == 8 ? 128 : (1 << QuantBits) - 1);
    int fit = 1;
    while (fit < 8 && 2 * fit * kLargestPair <= 32767) fit *= 2;
    return fit;
  }
  static bytes broadcast_quad(const std::int8_t* x) {
    std::int32_t quad = 0;
    std::memcpy(&quad, x, sizeof quad);
    return _mm256_set1_epi32(quad);
  }
  /// Weights as pair products want them. Full bytes count as signed: the sign goes to the inputs.
  template <int QuantBits>
  struct factor {
    bytes quants;
    explicit factor(bytes unsigned_quants) : quants(unsigned_quants) {}
    pairs times(bytes inputs) const { return _mm256_maddubs_epi16(quants, inputs); }
  };

  template <int Bits>
  static ints shift_left(ints value) {
    return _mm256_slli_epi32(value, Bits);
  }
  static floats to_floats(ints value) { return _mm256_cvtepi32_ps(value); }

  static floats add(floats a, floats b) { return _mm256_add_ps(a, b); }
  static floats multiply(floats a, floats b) { return _mm256_mul_ps(a, b); }
  static floats fused(floats a, floats b, floats sum) { return _mm256_fmadd_ps(a, b, sum); }
  static floats multiply_add(floats a, floats b, floats sum) { return _mm256_fmadd_ps(a, b, sum); }
  static floats pair_dot(floats sum, bf16_pairs pairs, std::uint32_t x) {
    const __m256i upper = _mm256_set1_epi32(std::bit_cast<std::int32_t>(0xFFFF0000U));
    const __m256i low = _mm256_slli_epi32(pairs, 16);
    const __m256i high = _mm256_and_si256(pairs, upper);
    sum = _mm256_fmadd_ps(_mm256_castsi256_ps(low), _mm256_set1_ps(std::bit_cast<float>(x << 16)), sum);
    return _mm256_fmadd_ps(_mm256_castsi256_ps(high), _mm256_set1_ps(std::bit_cast<float>(x & 0xFFFF0000U)), sum);
  }
  static void store(float* to, floats values) { _mm256_storeu_ps(to, values); }
};

template <>
struct lanes_avx2::factor<8> {
  bytes signed_quants;
  bytes magnitudes;
  explicit factor(bytes quants)
      : signed_quants(_mm256_xor_si256(quants, _mm256_set1_epi8(-128))), magnitudes(_mm256_abs_epi8(signed_quants)) {}
  pairs times(bytes inputs) const { return _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(inputs, signed_quants)); }
};

}  // namespace
}  // namespace tandem::gpu::host

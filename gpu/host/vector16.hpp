#pragma once
/// Sixteen floats as one value, for the files that are compiled once per instruction set (row_ops_*, attention_*). No
/// standard templates here or there: an inline function compiled for AVX-512 must never be the one the linker keeps for
/// everybody. Everything has internal linkage.

#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tandem::gpu::host {
namespace {  // NOLINT: see above

#define TANDEM_INLINE inline __attribute__((always_inline))

typedef float v16 __attribute__((vector_size(64)));
typedef std::int32_t i16 __attribute__((vector_size(64)));
typedef std::uint16_t h16 __attribute__((vector_size(32)));

TANDEM_INLINE v16 splat(float x) {
  return v16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}
TANDEM_INLINE v16 load16(const float* from) {
  v16 value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
TANDEM_INLINE void store16(float* to, v16 value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// bf16 is the upper half of an fp32.
TANDEM_INLINE v16 load16(const std::uint16_t* from) {
  h16 half;
  __builtin_memcpy(&half, from, sizeof half);
  const i16 wide = __builtin_convertvector(half, i16) << 16;
  return reinterpret_cast<v16>(wide);
}

/// a*b + c: one rounding where the instruction set has it, two elsewhere; never a choice of the compiler.
TANDEM_INLINE v16 multiply_add(v16 a, v16 b, v16 c) {
#if defined(__AVX512F__)
  return reinterpret_cast<v16>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__FMA__)
  struct halves {
    __m256 low, high;
  };
  const halves x = __builtin_bit_cast(halves, a);
  const halves y = __builtin_bit_cast(halves, b);
  const halves z = __builtin_bit_cast(halves, c);
  return __builtin_bit_cast(v16, halves{_mm256_fmadd_ps(x.low, y.low, z.low), _mm256_fmadd_ps(x.high, y.high, z.high)});
#else
  return a * b + c;
#endif
}

TANDEM_INLINE v16 choose(i16 mask, v16 yes, v16 no) {
  return reinterpret_cast<v16>((mask & reinterpret_cast<i16>(yes)) | (~mask & reinterpret_cast<i16>(no)));
}

/// Sum of the lanes in one fixed order.
TANDEM_INLINE float sum_lanes(v16 x) {
  float lane[16];
  store16(lane, x);
  for (int width = 8; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  return lane[0];
}

/// Largest lane; NaN lanes do not win.
TANDEM_INLINE float max_lanes(v16 x) {
  float lane[16];
  store16(lane, x);
  float best = lane[0];
  for (int i = 1; i < 16; ++i) best = lane[i] > best ? lane[i] : best;
  return best;
}

/// e^x to about 2 ulp, 0 below -87.3, finite above 88.3. Range reduction by ln 2 in two parts, then a polynomial of
/// degree 6 (coefficients: Cephes expf).
TANDEM_INLINE v16 exponential(v16 x) {
  constexpr float kLowest = -87.3F;
  constexpr float kHighest = 88.3F;
  constexpr float kRounding = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
  const i16 vanishes = x < splat(kLowest);
  x = choose(vanishes, splat(kLowest), x);
  x = choose(x > splat(kHighest), splat(kHighest), x);
  const v16 shifted = x * splat(1.44269504088896341F) + splat(kRounding);
  const v16 n = shifted - splat(kRounding);
  v16 r = multiply_add(n, splat(-0.693359375F), x);
  r = multiply_add(n, splat(2.12194440e-4F), r);
  v16 p = splat(1.9875691500e-4F);
  p = multiply_add(p, r, splat(1.3981999507e-3F));
  p = multiply_add(p, r, splat(8.3334519073e-3F));
  p = multiply_add(p, r, splat(4.1665795894e-2F));
  p = multiply_add(p, r, splat(1.6666665459e-1F));
  p = multiply_add(p, r, splat(5.0000001201e-1F));
  p = multiply_add(p, r * r, r + splat(1.0F));
  // The low bits of `shifted` hold n: 2^n goes straight into the exponent.
  const i16 exponent = (reinterpret_cast<i16>(shifted) - reinterpret_cast<i16>(splat(kRounding))) << 23;
  const v16 value = reinterpret_cast<v16>(reinterpret_cast<i16>(p) + exponent);
  return choose(vanishes, splat(0.0F), value);
}

}  // namespace
}  // namespace tandem::gpu::host

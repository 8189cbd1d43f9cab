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

#if defined(__AVX512F__)
constexpr int kPartLanes = 16;
#elif defined(__AVX__)
constexpr int kPartLanes = 8;
#else
constexpr int kPartLanes = 4;
#endif
constexpr int kParts = 16 / kPartLanes;

typedef float float_part __attribute__((vector_size(kPartLanes * 4)));
typedef std::uint32_t uint_part __attribute__((vector_size(kPartLanes * 4)));
typedef std::int32_t int_part __attribute__((vector_size(kPartLanes * 4)));
typedef std::uint16_t half_part __attribute__((vector_size(kPartLanes * 2)));

/// Registers of the machine's own width: one vector of 64 bytes would go through memory where registers are narrower.
struct v16 {
  float_part part[kParts];
};

TANDEM_INLINE v16 splat(float x) {
  v16 value;
  for (int i = 0; i < kParts; ++i) value.part[i] = x - float_part{};  // folded: x - 0 is x, also for -0
  return value;
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
  v16 value;
  for (int i = 0; i < kParts; ++i) {
    half_part half;
    __builtin_memcpy(&half, from + i * kPartLanes, sizeof half);
    value.part[i] = reinterpret_cast<float_part>(__builtin_convertvector(half, int_part) << 16);
  }
  return value;
}

/// Intrinsics because GCC 12 takes the bytes apart one by one.
TANDEM_INLINE v16 load16(const std::int8_t* from) {
  v16 value;
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  value.part[0] = reinterpret_cast<float_part>(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
#elif defined(__AVX2__)
  for (int i = 0; i < kParts; ++i) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i * kPartLanes));
    value.part[i] = reinterpret_cast<float_part>(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
  }
#else
  for (int i = 0; i < kParts; ++i)
    for (int lane = 0; lane < kPartLanes; ++lane) value.part[i][lane] = static_cast<float>(from[i * kPartLanes + lane]);
#endif
  return value;
}

#define TANDEM_LANEWISE(operation)                                              \
  TANDEM_INLINE v16 operator operation(v16 a, v16 b) {                          \
    for (int i = 0; i < kParts; ++i) a.part[i] = a.part[i] operation b.part[i]; \
    return a;                                                                   \
  }
TANDEM_LANEWISE(+)
TANDEM_LANEWISE(-)
TANDEM_LANEWISE(*)
TANDEM_LANEWISE(/)
#undef TANDEM_LANEWISE
TANDEM_INLINE v16& operator+=(v16& a, v16 b) {
  return a = a + b;
}
TANDEM_INLINE v16 operator-(v16 a) {
  for (int i = 0; i < kParts; ++i) a.part[i] = -a.part[i];
  return a;
}

/// a*b + c: one rounding where the instruction set has it, two elsewhere; never a choice of the compiler.
TANDEM_INLINE v16 multiply_add(v16 a, v16 b, v16 c) {
#if defined(__AVX512F__)
  c.part[0] = reinterpret_cast<float_part>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a.part[0]), reinterpret_cast<__m512>(b.part[0]), reinterpret_cast<__m512>(c.part[0])));
  return c;
#elif defined(__FMA__)
  for (int i = 0; i < kParts; ++i)
    c.part[i] = reinterpret_cast<float_part>(_mm256_fmadd_ps(
        reinterpret_cast<__m256>(a.part[i]), reinterpret_cast<__m256>(b.part[i]), reinterpret_cast<__m256>(c.part[i])));
  return c;
#else
  return a * b + c;
#endif
}

/// Per lane: a > b ? yes : no.
TANDEM_INLINE v16 choose_greater(v16 a, v16 b, v16 yes, v16 no) {
#if defined(__AVX512F__)
  const __mmask16 greater =
      _mm512_cmp_ps_mask(reinterpret_cast<__m512>(a.part[0]), reinterpret_cast<__m512>(b.part[0]), _CMP_GT_OQ);
  yes.part[0] = reinterpret_cast<float_part>(
      _mm512_mask_blend_ps(greater, reinterpret_cast<__m512>(no.part[0]), reinterpret_cast<__m512>(yes.part[0])));
#else
  for (int i = 0; i < kParts; ++i) {
    const int_part mask = a.part[i] > b.part[i];
    yes.part[i] = reinterpret_cast<float_part>((mask & reinterpret_cast<int_part>(yes.part[i])) |
                                               (~mask & reinterpret_cast<int_part>(no.part[i])));
  }
#endif
  return yes;
}

/// `value` · 2^n, where n stands in the low bits of `shifted` (n + 1.5 · 2^23): n goes straight into the exponent.
TANDEM_INLINE v16 scale_by_power(v16 value, v16 shifted, v16 rounding) {
  for (int i = 0; i < kParts; ++i) {
    const int_part n = reinterpret_cast<int_part>(shifted.part[i]) - reinterpret_cast<int_part>(rounding.part[i]);
    value.part[i] = reinterpret_cast<float_part>(reinterpret_cast<int_part>(value.part[i]) + (n << 23));
  }
  return value;
}

/// To the nearest even bf16, which an fp32 with a lower half of zero is; NaN stays NaN.
TANDEM_INLINE v16 round_to_bf16(v16 value) {
  for (int i = 0; i < kParts; ++i) {
    const uint_part bits = reinterpret_cast<uint_part>(value.part[i]);
    const uint_part is_nan = reinterpret_cast<uint_part>((bits & 0x7FFFFFFFU) > 0x7F800000U);
    const uint_part rounded = bits + 0x7FFFU + (bits >> 16 & 1U);
    value.part[i] = reinterpret_cast<float_part>(((is_nan & (bits | 0x400000U)) | (~is_nan & rounded)) & 0xFFFF0000U);
  }
  return value;
}

/// Sum of the lanes in one fixed order.
TANDEM_INLINE float sum_lanes(v16 x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(x.part[0]));  // halves as below
#else
  float lane[16];
  store16(lane, x);
  for (int width = 8; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  return lane[0];
#endif
}

/// Largest lane; any number or NaN when one is NaN.
TANDEM_INLINE float max_lanes(v16 x) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(reinterpret_cast<__m512>(x.part[0]));
#else
  float lane[16];
  store16(lane, x);
  for (int width = 8; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) lane[i] = lane[i + width] > lane[i] ? lane[i + width] : lane[i];
  return lane[0];
#endif
}

/// e^x to about 2 ulp, 0 below -87.3, finite above 88.3. Range reduction by ln 2 in two parts, then a polynomial of
/// degree 6 (coefficients: Cephes expf).
TANDEM_INLINE v16 exponential(v16 x) {
  constexpr float kLowest = -87.3F;
  constexpr float kHighest = 88.3F;
  constexpr float kRounding = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
  const v16 exact = x;
  x = choose_greater(splat(kLowest), x, splat(kLowest), x);
  x = choose_greater(x, splat(kHighest), splat(kHighest), x);
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
  return choose_greater(splat(kLowest), exact, splat(0.0F), scale_by_power(p, shifted, splat(kRounding)));
}

}  // namespace
}  // namespace tandem::gpu::host

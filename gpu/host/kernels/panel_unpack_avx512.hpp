#pragma once
/// Unpacks panels with AVX-512 (panel_numbers.hpp has what and how exactly).
///
/// Mapping:    a nibble row is looked up bytewise in a table of 16 floats that one fused multiply-add makes (vpermb
///             reads the upper two bytes of an entry); a row of wider fields is two vectors of 16 floats, made in
///             place.
/// Requires:   F, BW, VBMI, VBMI2.
/// Cost:       per output and block of 32 inputs a store and 4 vector operations for nibbles, 8 for bytes and sixes.
///             While tiles are in use one of the two vector ports takes no multiply-adds, so those are kept few.

#include <immintrin.h>

#include <array>

#include "gpu/host/kernels/panel_numbers.hpp"
#include "gpu/host/kernels/row_groups.hpp"

namespace tandem::gpu::host {
namespace {

/// Control bytes of vpmultishiftqb: each byte of the result is 8 bits of its 8-byte word, from that bit on.
struct alignas(64) bit_windows {
  std::array<std::uint8_t, 64> from{};
};

/// For output `s` of a line: both bytes of place 4c + i get nibble 4s + i of word c at bits 2..5.
constexpr bit_windows nibble_windows(int s) {
  bit_windows out;
  for (int b = 0; b < 64; ++b)
    out.from[static_cast<std::size_t>(b)] = static_cast<std::uint8_t>((4 * (4 * s + b % 8 / 2) - 2) & 63);
  return out;
}

/// Fields of `bits` bits that begin at bit `first` of each word, one for either float of the word: they end at bit 22.
constexpr bit_windows field_windows(int first, int bits) {
  bit_windows out;
  for (int b = 0; b < 64; ++b) {
    const int field = first + b / 4 % 2 * bits;
    const int window = field + b % 4 * 8 - (23 - bits);
    out.from[static_cast<std::size_t>(b)] = static_cast<std::uint8_t>(window & 63);
  }
  return out;
}

template <int S>
inline constexpr bit_windows kNibbles = nibble_windows(S);
template <int First, int Bits>
inline constexpr bit_windows kFields = field_windows(First, Bits);

struct panel_unpack_avx512 {
  static __m512 halves(const std::byte* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static __m128i sixteen_bytes(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static __m512 unsigned_bytes(const std::byte* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(sixteen_bytes(from)));
  }
  static __m512 signed_bytes(const std::byte* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(sixteen_bytes(from)));
  }
  static __m512i windows(const bit_windows& from, __m512i words) {
    return _mm512_multishift_epi64_epi8(_mm512_load_si512(from.from.data()), words);
  }

  template <packed_format Format>
  static void numbers(const std::byte* header, std::int64_t in_unit, panel_numbers<has_two_scales(Format)>& out) {
    const __m512 factor = _mm512_set1_ps(kRoundingFactor);
    const std::byte* small = header + 128 + 64 * in_unit;
    TANDEM_UNROLL
    for (int n = 0; n < kPanelOutputs; n += 16) {
      const __m512 first = halves(header + 2 * n);
      if constexpr (Format == packed_format::panel_six_super16) {
        const __m512 zero = _mm512_set1_ps(-(kSixBase + 32));
        const __m512 scale = _mm512_mul_ps(_mm512_mul_ps(first, signed_bytes(small - 64 + n)), factor);
        const __m512 second = _mm512_mul_ps(_mm512_mul_ps(first, signed_bytes(small - 32 + n)), factor);
        _mm512_store_ps(out.scale + n, scale);
        _mm512_store_ps(out.offset + n, _mm512_mul_ps(scale, zero));
        _mm512_store_ps(out.second_scale + n, second);
        _mm512_store_ps(out.second_offset + n, _mm512_mul_ps(second, zero));
      } else if constexpr (Format == packed_format::panel_nibble_half || Format == packed_format::panel_byte_half) {
        constexpr float kZero = Format == packed_format::panel_nibble_half ? 8 : kByteBase + 128;
        const __m512 scale = _mm512_mul_ps(first, factor);
        _mm512_store_ps(out.scale + n, scale);
        _mm512_store_ps(out.offset + n, _mm512_mul_ps(scale, _mm512_set1_ps(-kZero)));
      } else {
        store_with_minimum<Format>(first, halves(header + 64 + 2 * n), small, n, out);
      }
    }
  }

  template <packed_format Format>
  static void store_with_minimum(__m512 scale, __m512 minimum, const std::byte* small, int n,
                                 panel_numbers<false>& out) {
    if constexpr (Format == packed_format::panel_nibble_super_min || Format == packed_format::panel_byte_super_min) {
      scale = _mm512_mul_ps(scale, unsigned_bytes(small + n));
      minimum = _mm512_mul_ps(minimum, unsigned_bytes(small + 32 + n));
    }
    const __m512 factor = _mm512_set1_ps(kRoundingFactor);
    scale = _mm512_mul_ps(scale, factor);
    minimum = _mm512_mul_ps(minimum, factor);
    if constexpr (!has_nibble_plane(Format)) {
      minimum = _mm512_fmadd_ps(_mm512_set1_ps(-kByteBase), scale, minimum);
    }
    _mm512_store_ps(out.scale + n, scale);
    _mm512_store_ps(out.offset + n, minimum);
  }

  /// Outputs [8 · Quarter, 8 · Quarter + 8) of a block to their rows of `out`.
  template <packed_format Format, int Quarter>
  TANDEM_INLINE static void unpack_quarter(const std::byte* plane, const panel_numbers<has_two_scales(Format)>& numbers,
                                           std::byte* out) {
    constexpr int kFirst = 8 * Quarter;
    out += kFirst * kPanelRowBytes;
    if constexpr (has_nibble_plane(Format)) {
      TANDEM_UNROLL
      for (int line = 0; line < 2; ++line)
        nibbles(plane + 64 * (2 * Quarter + line), numbers, kFirst + 4 * line, out + 256 * line);
    } else if constexpr (Format == packed_format::panel_six_super16) {
      sixes(plane + 192 * Quarter, numbers, kFirst, out);
    } else {
      TANDEM_UNROLL
      for (int line = 0; line < 4; ++line)
        bytes(plane + 64 * (4 * Quarter + line), numbers, kFirst + 2 * line, out + 128 * line);
    }
  }

  template <int S>
  TANDEM_INLINE static void nibble_row(__m512i words, const panel_numbers<false>& numbers, int n, std::byte* out) {
    const __m512 all = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 table = _mm512_fmadd_ps(all, _mm512_set1_ps(numbers.scale[n]), _mm512_set1_ps(numbers.offset[n]));
    // Entry q is bytes 4q..4q+3, its upper half bytes 4q + 2 and 4q + 3.
    const __m512i upper_bytes = _mm512_set1_epi16(0x0302);
    const __m512i entry = _mm512_set1_epi8(0x3C);
    constexpr int kAndOr = 0xEA;  // (a & b) | c
    const __m512i at = _mm512_ternarylogic_epi64(windows(kNibbles<S>, words), entry, upper_bytes, kAndOr);
    _mm512_store_si512(out, _mm512_permutexvar_epi8(at, _mm512_castps_si512(table)));
  }

  TANDEM_INLINE static void nibbles(const std::byte* line, const panel_numbers<false>& numbers, int n, std::byte* out) {
    prefetch(line);
    const __m512i words = _mm512_load_si512(line);
    nibble_row<0>(words, numbers, n, out);
    nibble_row<1>(words, numbers, n + 1, out + 64);
    nibble_row<2>(words, numbers, n + 2, out + 128);
    nibble_row<3>(words, numbers, n + 3, out + 192);
  }

  /// 16 fields of `Bits` bits from bit `First` of each word on, as weights.
  template <int First, int Bits>
  TANDEM_INLINE static __m512 fields(__m512i words, float scale, float offset) {
    constexpr int kMask = ((1 << Bits) - 1) << (23 - Bits);
    constexpr int kBase = (127 + Bits) << 23;  // the float 1 << Bits
    constexpr int kAndOr = 0xEA;
    const __m512i bits = _mm512_ternarylogic_epi64(windows(kFields<First, Bits>, words), _mm512_set1_epi32(kMask),
                                                   _mm512_set1_epi32(kBase), kAndOr);
    return _mm512_fmadd_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(scale), _mm512_set1_ps(offset));
  }
  /// The upper halves of both, alternating.
  TANDEM_INLINE static void store_row(__m512 first, __m512 second, std::byte* out) {
    constexpr __mmask32 kOdd = 0xAAAAAAAA;
    const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(first), 16);
    _mm512_store_si512(out, _mm512_mask_blend_epi16(kOdd, low, _mm512_castps_si512(second)));
  }

  TANDEM_INLINE static void bytes(const std::byte* line, const panel_numbers<false>& numbers, int n, std::byte* out) {
    static_assert(kByteBase == 1 << 8);
    prefetch(line);
    const __m512i words = _mm512_load_si512(line);
    const float* scale = numbers.scale + n;
    const float* offset = numbers.offset + n;
    store_row(fields<0, 8>(words, scale[0], offset[0]), fields<16, 8>(words, scale[0], offset[0]), out);
    store_row(fields<32, 8>(words, scale[1], offset[1]), fields<48, 8>(words, scale[1], offset[1]), out + 64);
  }

  /// Output `n` + S of eight, whose 24 bits begin at bit 24 S of the three lines' words.
  template <int S>
  TANDEM_INLINE static void six_row(const __m512i (&words)[5], const panel_numbers<true>& numbers, int n,
                                    std::byte* out) {
    // 64 bits from bit 32 w on are in words[w]; a pair of fields lies whole in one of them.
    constexpr int kFirst = 24 * S;
    constexpr int kSecond = kFirst + 12;
    constexpr int kFirstWord = kFirst % 64 <= 52 ? kFirst / 64 * 2 : kFirst / 64 * 2 + 1;
    constexpr int kSecondWord = kSecond % 64 <= 52 ? kSecond / 64 * 2 : kSecond / 64 * 2 + 1;
    store_row(fields<kFirst - 32 * kFirstWord, 6>(words[kFirstWord], numbers.scale[n + S], numbers.offset[n + S]),
              fields<kSecond - 32 * kSecondWord, 6>(words[kSecondWord], numbers.second_scale[n + S],
                                                    numbers.second_offset[n + S]),
              out + 64 * S);
  }
  TANDEM_INLINE static void sixes(const std::byte* lines, const panel_numbers<true>& numbers, int n, std::byte* out) {
    static_assert(kSixBase == 1 << 6);
    for (int line = 0; line < 3; ++line) prefetch(lines + 64 * line);
    __m512i words[5];
    for (int line = 0; line < 3; ++line) words[2 * line] = _mm512_load_si512(lines + 64 * line);
    words[1] = _mm512_shrdi_epi64(words[0], words[2], 32);
    words[3] = _mm512_shrdi_epi64(words[2], words[4], 32);
    six_row<0>(words, numbers, n, out);
    six_row<1>(words, numbers, n, out);
    six_row<2>(words, numbers, n, out);
    six_row<3>(words, numbers, n, out);
    six_row<4>(words, numbers, n, out);
    six_row<5>(words, numbers, n, out);
    six_row<6>(words, numbers, n, out);
    six_row<7>(words, numbers, n, out);
  }

  /// Into the level-2 cache. As assembly, because GCC 12 drops some of the built-in prefetches here.
  static void prefetch(const std::byte* at) {
    constexpr std::size_t kAhead = 12288;
    asm volatile("prefetcht1 %0" : : "m"(at[kAhead]));
  }

  static void prefetch_to_write(const float* at) { asm volatile("prefetchw %0" : : "m"(*at)); }

  /// tile[n][r] in rows of 16 floats to out[r · stride + n] for n < outputs ≤ 16, r < rows.
  static void write(const float* tile, int rows, int outputs, float* out, std::int64_t stride) {
    __m512 columns[16];
    transpose(tile, columns);
    const auto mask = static_cast<__mmask16>((1U << outputs) - 1);
    for (int r = 0; r < rows; ++r) _mm512_mask_storeu_ps(out + r * stride, mask, columns[r]);
  }

  static void interleave(const std::uint32_t* pairs, std::int64_t stride, std::int32_t rows, std::int64_t blocks,
                         std::uint32_t* out) {
    alignas(kCacheLine) float block[16 * 16] = {};
    const auto mask = static_cast<__mmask16>((1U << rows) - 1);
    for (std::int64_t b = 0; b < blocks; ++b, pairs += 16) {
      for (std::int32_t row = 0; row < rows; ++row)
        _mm512_store_si512(block + 16 * row, _mm512_loadu_si512(pairs + row * stride));
      __m512 columns[16];
      transpose(block, columns);
      for (const __m512& column : columns) {
        _mm512_mask_storeu_ps(out, mask, column);
        out += rows;
      }
    }
  }

  static void transpose(const float* tile, __m512 (&columns)[16]) {
    __m512d pairs[16];  // after two rounds: lane L of pairs[4i + j] is column 4L + j of rows 4i..4i+3
    TANDEM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float* rows = tile + 64 * i;
      const __m512 a = _mm512_load_ps(rows);
      const __m512 b = _mm512_load_ps(rows + 16);
      const __m512 c = _mm512_load_ps(rows + 32);
      const __m512 d = _mm512_load_ps(rows + 48);
      const __m512d low_ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
      const __m512d high_ab = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
      const __m512d low_cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
      const __m512d high_cd = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
      pairs[4 * i] = _mm512_unpacklo_pd(low_ab, low_cd);
      pairs[4 * i + 1] = _mm512_unpackhi_pd(low_ab, low_cd);
      pairs[4 * i + 2] = _mm512_unpacklo_pd(high_ab, high_cd);
      pairs[4 * i + 3] = _mm512_unpackhi_pd(high_ab, high_cd);
    }
    TANDEM_UNROLL
    for (int j = 0; j < 4; ++j) {
      const __m512 a = _mm512_castpd_ps(pairs[j]);
      const __m512 b = _mm512_castpd_ps(pairs[4 + j]);
      const __m512 c = _mm512_castpd_ps(pairs[8 + j]);
      const __m512 d = _mm512_castpd_ps(pairs[12 + j]);
      const __m512 even_ab = _mm512_shuffle_f32x4(a, b, 0x88);
      const __m512 even_cd = _mm512_shuffle_f32x4(c, d, 0x88);
      const __m512 odd_ab = _mm512_shuffle_f32x4(a, b, 0xDD);
      const __m512 odd_cd = _mm512_shuffle_f32x4(c, d, 0xDD);
      columns[j] = _mm512_shuffle_f32x4(even_ab, even_cd, 0x88);
      columns[4 + j] = _mm512_shuffle_f32x4(odd_ab, odd_cd, 0x88);
      columns[8 + j] = _mm512_shuffle_f32x4(even_ab, even_cd, 0xDD);
      columns[12 + j] = _mm512_shuffle_f32x4(odd_ab, odd_cd, 0xDD);
    }
  }
};

}  // namespace
}  // namespace tandem::gpu::host

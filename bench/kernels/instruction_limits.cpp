#include "instruction_limits.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>

#include "gpu/host/kernels/amx_tiles.hpp"
#endif

namespace tandem::bench {
namespace {

using gpu::host::activation_kind;
using gpu::host::isa;

constexpr int kRounds = 4096;
constexpr int kChains = 12;  // independent sums: two a cycle with a latency of up to six

#if defined(__x86_64__)
#define TANDEM_AVX2 __attribute__((target("avx2,fma")))
#define TANDEM_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")))

// The empty assembly hides from the compiler that all sums are equal, or it would compute one of them, and that nobody
// reads them.

TANDEM_AVX2 void fma_256() {
  __m256 sums[kChains] = {};
  __m256 x = _mm256_set1_ps(0.5F);
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));
  for (int round = 0; round < kRounds; ++round) {
    asm volatile("" : "+x"(x));
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(x, x, sum);
  }
  for (__m256& sum : sums) asm volatile("" : : "x"(sum));
}

TANDEM_AVX2 void maddubs_256() {
  __m256i sums[kChains] = {};
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i x = _mm256_set1_epi8(1);
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(x));  // or one product would serve all
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, x), ones));
    }
  }
  for (__m256i& sum : sums) asm volatile("" : : "x"(sum));
}

TANDEM_AVX512 void fma_512() {
  __m512 sums[kChains] = {};
  __m512 x = _mm512_set1_ps(0.5F);
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
  for (int round = 0; round < kRounds; ++round) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(x, x, sum);
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
}

TANDEM_AVX512 void vpdpbusd_512() {
  __m512i sums[kChains] = {};
  __m512i x = _mm512_set1_epi8(1);
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
  for (int round = 0; round < kRounds; ++round) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, x, x);
  }
  for (__m512i& sum : sums) asm volatile("" : : "v"(sum));
}

TANDEM_AVX512 void vdpbf16ps_512() {
  __m512 sums[kChains] = {};
  __m512i x = _mm512_set1_epi16(0x3F00);
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
  for (int round = 0; round < kRounds; ++round) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 12
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(x));
    }
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
}

constexpr int kTilesUsed = 8;

void load_full_shapes() {
  gpu::host::tile_shapes shapes;
  for (int tile = 0; tile < kTilesUsed; ++tile) shapes.set(tile, gpu::host::kTileRows, gpu::host::kTileRowBytes);
  gpu::host::amx_tiles::load_shapes(shapes);
}

void tdpbf16ps() {
  using tiles = gpu::host::amx_tiles;
  load_full_shapes();
  for (int round = 0; round < kRounds; ++round) {
    tiles::dot_bf16<0, 4, 6>();
    tiles::dot_bf16<1, 4, 7>();
    tiles::dot_bf16<2, 5, 6>();
    tiles::dot_bf16<3, 5, 7>();
  }
  tiles::release();
}

TANDEM_AVX512 std::uint64_t read_512(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kAhead = 4096;
  __m512i sums[4] = {};
  for (std::size_t at = 0; at < bytes; at += 256) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(from + at + 64 * i + kAhead), _MM_HINT_T0);
      sums[i] = _mm512_add_epi64(sums[i], _mm512_load_si512(from + at + 64 * i));
    }
  }
  const __m512i all = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(all));
}
#endif

std::uint64_t read_plain(const std::byte* from, std::size_t bytes) {
  std::uint64_t sums[32] = {};
  for (std::size_t at = 0; at < bytes; at += sizeof sums) {
    std::uint64_t words[32];
    std::memcpy(words, from + at, sizeof words);
    for (std::size_t i = 0; i < 32; ++i) sums[i] += words[i];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all += sum;
  return all;
}

}  // namespace

std::vector<instruction_limit> limits_of(isa set) {
  std::vector<instruction_limit> limits;
#if defined(__x86_64__)
  constexpr double kInstructions = double{kRounds} * kChains;
  constexpr double kTileProducts = double{kRounds} * 4;
  if (set == isa::avx2) {
    limits.push_back({"fma 256", kInstructions * 8 * 2, fma_256});
    limits.push_back({"vpmaddubsw 256", kInstructions * 32 * 2, maddubs_256});
  }
  if (set >= isa::avx512) {
    limits.push_back({"fma", kInstructions * 16 * 2, fma_512});
    limits.push_back({"vdpbf16ps", kInstructions * 32 * 2, vdpbf16ps_512});
    limits.push_back({"vpdpbusd", kInstructions * 64 * 2, vpdpbusd_512});
  }
  if (set == isa::amx) {
    limits.push_back({"tdpbf16ps", kTileProducts * 16 * 16 * 32 * 2, tdpbf16ps});
  }
#else
  static_cast<void>(set);
#endif
  return limits;
}

std::string limit_of(isa set, activation_kind kind) {
  if (set == isa::portable) return "";
  const bool is_narrow = set == isa::avx2;
  switch (kind) {
    case activation_kind::int8:
    case activation_kind::int8_pair:
      return is_narrow ? "vpmaddubsw 256" : "vpdpbusd";
    case activation_kind::bf16:
      return is_narrow ? "fma 256" : "vdpbf16ps";
    case activation_kind::bf16_columns:
      return "tdpbf16ps";
    case activation_kind::fp32:
      break;
  }
  return is_narrow ? "fma 256" : "fma";
}

std::uint64_t read_all(isa set, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  if (set >= isa::avx512) return read_512(from, bytes);
#else
  static_cast<void>(set);
#endif
  return read_plain(from, bytes);
}

}  // namespace tandem::bench

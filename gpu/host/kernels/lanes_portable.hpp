#pragma once
/// 16 lanes as arrays: plain C++ for any machine, and the definition of what the other lanes_<isa>.hpp compute.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

struct lanes_portable {
  static constexpr int kLanes = 16;
  static constexpr int kInt8Rows = 1;  // more rows would spill more than they share
  static constexpr int kFloatRows = 4;
  static constexpr bool kFullBytesAreSigned = false;
  static constexpr bool kQuadsTogether = true;

  struct bytes {
    std::uint8_t at[64];
  };
  struct ints {
    std::int32_t at[16];
  };
  struct floats {
    float at[16];
  };
  struct bf16_pairs {
    std::uint32_t at[16];
  };

  static ints zero_ints() { return {}; }
  static floats zero_floats() { return {}; }

  static ints broadcast(std::int32_t value) {
    ints out;
    for (std::int32_t& lane : out.at) lane = value;
    return out;
  }
  static floats broadcast(float value) {
    floats out;
    for (float& lane : out.at) lane = value;
    return out;
  }

  /// Asks for `Bytes` bytes ahead of use, which may lie anywhere. Left to the machine here.
  template <std::size_t Bytes>
  static void prefetch(const std::byte*) {}

  static bytes load_bytes(const std::byte* from) {
    bytes out;
    std::memcpy(out.at, from, sizeof out.at);
    return out;
  }
  static floats load_floats(const std::byte* from) {
    floats out;
    std::memcpy(out.at, from, sizeof out.at);
    return out;
  }
  static bf16_pairs load_pairs(const std::byte* from) {
    bf16_pairs out;
    std::memcpy(out.at, from, sizeof out.at);
    return out;
  }
  static floats load_half(const std::byte* from) {
    std::uint16_t halves[16];
    std::memcpy(halves, from, sizeof halves);
    floats out;
    for (int n = 0; n < 16; ++n) out.at[n] = model::half_to_float(halves[n]);
    return out;
  }
  static floats load_unsigned(const std::byte* from) {
    floats out;
    for (int n = 0; n < 16; ++n) out.at[n] = static_cast<float>(std::to_integer<std::uint8_t>(from[n]));
    return out;
  }
  static floats load_signed(const std::byte* from) {
    floats out;
    for (int n = 0; n < 16; ++n) out.at[n] = static_cast<float>(std::to_integer<std::int8_t>(from[n]));
    return out;
  }

  static bytes low_nibbles(bytes both) {
    for (std::uint8_t& byte : both.at) byte = static_cast<std::uint8_t>(byte & 15);
    return both;
  }
  static bytes high_nibbles(bytes both) {
    for (std::uint8_t& byte : both.at) byte = static_cast<std::uint8_t>(byte >> 4);
    return both;
  }
  /// Adds bits 2·Index, 2·Index + 1 of `pairs` as bits 4, 5.
  template <int Index>
  static bytes with_pair(bytes low, const bytes& pairs) {
    for (int n = 0; n < 64; ++n)
      low.at[n] = static_cast<std::uint8_t>(low.at[n] | ((pairs.at[n] >> (2 * Index)) & 3) << 4);
    return low;
  }

  /// sum[n] + Σ_{First ≤ j < First+Count} Σ_{i<4} quants[j][4n+i] · x[4j+i].
  template <int First, int Count>
  static ints dot_quads(ints sum, const bytes (&quants)[8], const std::int8_t* x) {
    for (int j = First; j < First + Count; ++j) {
      const std::uint8_t* q = quants[j].at;
      const std::int8_t* a = x + 4 * j;
      for (int n = 0; n < 16; ++n) {
        sum.at[n] += q[4 * n] * a[0] + q[4 * n + 1] * a[1] + q[4 * n + 2] * a[2] + q[4 * n + 3] * a[3];
      }
    }
    return sum;
  }
  template <int Bits>
  static ints shift_left(ints value) {
    for (std::int32_t& lane : value.at) lane *= 1 << Bits;
    return value;
  }
  static floats to_floats(const ints& value) {
    floats out;
    for (int n = 0; n < 16; ++n) out.at[n] = static_cast<float>(value.at[n]);
    return out;
  }

  static floats add(floats a, const floats& b) {
    for (int n = 0; n < 16; ++n) a.at[n] += b.at[n];
    return a;
  }
  static floats multiply(floats a, const floats& b) {
    for (int n = 0; n < 16; ++n) a.at[n] *= b.at[n];
    return a;
  }
  /// a · b + sum, rounded once: a library call on machines without the instruction.
  static floats fused(const floats& a, const floats& b, floats sum) {
    for (int n = 0; n < 16; ++n) sum.at[n] = std::fma(a.at[n], b.at[n], sum.at[n]);
    return sum;
  }
  /// a · b + sum, rounded as this instruction set does fastest.
  static floats multiply_add(const floats& a, const floats& b, floats sum) {
    for (int n = 0; n < 16; ++n) sum.at[n] += a.at[n] * b.at[n];
    return sum;
  }
  /// sum + low · low + high · high of the bf16 pairs.
  static floats pair_dot(floats sum, const bf16_pairs& pairs, std::uint32_t x) {
    const float low = model::bfloat16_to_float(static_cast<std::uint16_t>(x));
    const float high = model::bfloat16_to_float(static_cast<std::uint16_t>(x >> 16));
    for (int n = 0; n < 16; ++n) {
      sum.at[n] += model::bfloat16_to_float(static_cast<std::uint16_t>(pairs.at[n])) * low;
      sum.at[n] += model::bfloat16_to_float(static_cast<std::uint16_t>(pairs.at[n] >> 16)) * high;
    }
    return sum;
  }
  static void store(float* to, const floats& values) { std::memcpy(to, values.at, sizeof values.at); }
};

}  // namespace
}  // namespace tandem::gpu::host

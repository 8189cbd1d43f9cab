#pragma once
/// How each quantised format turns packed bytes into vectors of unsigned quants, scales and minimums.
/// `V` is one of the lanes_<isa>.hpp; `lane` the first output of the part of a tile it works on. A plane gives all
/// eight quads of a block (unpack) or one of them (quad).

#include <cstddef>
#include <cstdint>

#include "gpu/host/packed_layout.hpp"

namespace tandem::gpu::host {
namespace {

struct byte_plane {
  template <class V>
  static void unpack(const std::byte* plane, int lane, typename V::bytes (&quants)[8]) {
    TANDEM_UNROLL
    for (int j = 0; j < 8; ++j) quants[j] = V::load_bytes(plane + 64 * j + 4 * lane);
  }
  template <class V, int Quad>
  static typename V::bytes quad(const std::byte* plane, int lane) {
    return V::load_bytes(plane + 64 * Quad + 4 * lane);
  }
};

struct nibble_plane {
  template <class V>
  static void unpack(const std::byte* plane, int lane, typename V::bytes (&quants)[8]) {
    TANDEM_UNROLL
    for (int j = 0; j < 4; ++j) {
      const typename V::bytes both = V::load_bytes(plane + 64 * j + 4 * lane);
      quants[j] = V::low_nibbles(both);
      quants[j + 4] = V::high_nibbles(both);
    }
  }
  template <class V, int Quad>
  static typename V::bytes quad(const std::byte* plane, int lane) {
    const typename V::bytes both = V::load_bytes(plane + 64 * (Quad % 4) + 4 * lane);
    return Quad < 4 ? V::low_nibbles(both) : V::high_nibbles(both);
  }
};

struct six_plane {
  template <class V>
  static void unpack(const std::byte* plane, int lane, typename V::bytes (&quants)[8]) {
    nibble_plane::unpack<V>(plane, lane, quants);
    TANDEM_UNROLL
    for (int p = 0; p < 2; ++p) {
      const typename V::bytes pairs = V::load_bytes(plane + 256 + 64 * p + 4 * lane);
      quants[4 * p] = V::template with_pair<0>(quants[4 * p], pairs);
      quants[4 * p + 1] = V::template with_pair<1>(quants[4 * p + 1], pairs);
      quants[4 * p + 2] = V::template with_pair<2>(quants[4 * p + 2], pairs);
      quants[4 * p + 3] = V::template with_pair<3>(quants[4 * p + 3], pairs);
    }
  }
  template <class V, int Quad>
  static typename V::bytes quad(const std::byte* plane, int lane) {
    const typename V::bytes pairs = V::load_bytes(plane + 256 + 64 * (Quad / 4) + 4 * lane);
    return V::template with_pair<Quad % 4>(nibble_plane::quad<V, Quad>(plane, lane), pairs);
  }
};

/// kZeroBits: the zero point is 1 << kZeroBits; -1 when there is none. kQuantBits: quants are below 1 << kQuantBits.
template <packed_format Format, class Plane, int QuantBits, int ZeroBits>
struct format_base {
  using plane = Plane;
  static constexpr format_layout kLayout = layout_of(Format);
  static constexpr int kQuantBits = QuantBits;
  static constexpr int kZeroBits = ZeroBits;
  static constexpr bool kHasMinimum = false;
  static constexpr bool kTwoScales = false;
};

template <packed_format Format, class Plane, int QuantBits, int ZeroBits>
struct half_format : format_base<Format, Plane, QuantBits, ZeroBits> {
  template <class V>
  static typename V::floats scale(const std::byte* header, std::int64_t in_unit, int lane) {
    return V::load_half(header + 32 * in_unit + 2 * lane);
  }
};

template <packed_format Format, class Plane, int QuantBits>
struct half_min_format : format_base<Format, Plane, QuantBits, -1> {
  static constexpr bool kHasMinimum = true;
  template <class V>
  static typename V::floats scale(const std::byte* header, std::int64_t, int lane) {
    return V::load_half(header + 2 * lane);
  }
  template <class V>
  static typename V::floats minimum(const std::byte* header, std::int64_t, int lane) {
    return V::load_half(header + 32 + 2 * lane);
  }
};

/// fp16 × 6 bits fits a float's mantissa: both products are exact.
template <packed_format Format, class Plane, int QuantBits>
struct super_min_format : format_base<Format, Plane, QuantBits, -1> {
  static constexpr bool kHasMinimum = true;
  template <class V>
  static typename V::floats scale(const std::byte* header, std::int64_t in_unit, int lane) {
    return V::multiply(V::load_half(header + 2 * lane), V::load_unsigned(header + 64 + 32 * in_unit + lane));
  }
  template <class V>
  static typename V::floats minimum(const std::byte* header, std::int64_t in_unit, int lane) {
    return V::multiply(V::load_half(header + 32 + 2 * lane), V::load_unsigned(header + 80 + 32 * in_unit + lane));
  }
};

/// fp16 × 8 bits: exact as well.
struct super16_format : format_base<packed_format::six_super16, six_plane, 6, 5> {
  static constexpr bool kTwoScales = true;
  template <class V>
  static typename V::floats scale(const std::byte* header, std::int64_t in_unit, int lane) {
    return V::multiply(V::load_half(header + 2 * lane), V::load_signed(header + 64 + 32 * in_unit + lane));
  }
  template <class V>
  static typename V::floats second_scale(const std::byte* header, std::int64_t in_unit, int lane) {
    return V::multiply(V::load_half(header + 2 * lane), V::load_signed(header + 80 + 32 * in_unit + lane));
  }
};

using nibble_half_format = half_format<packed_format::nibble_half, nibble_plane, 4, 3>;
using nibble_half_min_format = half_min_format<packed_format::nibble_half_min, nibble_plane, 4>;
using nibble_super_min_format = super_min_format<packed_format::nibble_super_min, nibble_plane, 4>;
using byte_half_format = half_format<packed_format::byte_half, byte_plane, 8, 7>;
using byte_half_min_format = half_min_format<packed_format::byte_half_min, byte_plane, 5>;
using byte_super_min_format = super_min_format<packed_format::byte_super_min, byte_plane, 5>;

}  // namespace
}  // namespace tandem::gpu::host

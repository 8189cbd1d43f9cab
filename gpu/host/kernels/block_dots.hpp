#pragma once
/// The integer dots of one block of weights with the blocks of some input rows: how int8_matmul gets them. They are
/// exact, so both ways give the same numbers.
///
/// `x[r][block].quants` are 32 inputs; dots[r][v] has one lane per output, vector v of the tile.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "gpu/host/kernels/row_groups.hpp"
// row_groups.hpp defines what the next header uses.
#include "gpu/host/kernels/int8_formats.hpp"

namespace tandem::gpu::host {
namespace {

/// Unpacks the block's weights to registers, one vector of outputs at a time. For instruction sets that sum four byte
/// products in 32 bits.
template <class V, class Format>
struct unpacked_dots {
  static constexpr int kVectors = 1;
  using ints = typename V::ints;

  typename V::bytes quants[8];

  unpacked_dots(const std::byte* plane, int lane) { Format::plane::template unpack<V>(plane, lane, quants); }

  /// dots += Σ over quads First..First+Count. Rows inside, so that independent sums follow each other, unless the
  /// instruction set wants a row's quads together.
  template <int First, int Count, int Rows>
  void add_to(ints (&dots)[Rows][kVectors], const activation_block* const (&x)[Rows], std::int64_t block) const {
    if constexpr (V::kQuadsTogether) {
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) {
        dots[r][0] = V::template dot_quads<First, Count>(dots[r][0], quants, x[r][block].quants);
      }
    } else {
      TANDEM_UNROLL
      for (int j = First; j < First + Count; ++j) {
        TANDEM_UNROLL
        for (int r = 0; r < Rows; ++r) dots[r][0] = V::dot(dots[r][0], quants[j], x[r][block].quants + 4 * j);
      }
    }
  }
};

/// Unpacks one quad of all outputs at a time, and takes each broadcast of four inputs to every vector of the tile: with
/// few registers, loads bind. For instruction sets that sum two byte products in 16 bits; such sums are widened as
/// late as they cannot overflow.
template <class V, class Format>
struct paired_dots {
  static constexpr int kVectors = kTileOutputs / V::kLanes;
  static constexpr int kBits = Format::kQuantBits;
  using ints = typename V::ints;
  using pairs = typename V::pairs;

  const std::byte* plane;

  paired_dots(const std::byte* at, int) : plane(at) {}

  template <int First, int Count, int Rows>
  TANDEM_INLINE void add_to(ints (&dots)[Rows][kVectors], const activation_block* const (&x)[Rows],
                            std::int64_t block) const {
    constexpr int kAtOnce =
        V::template quads_in_16_bits<kBits>() < Count ? V::template quads_in_16_bits<kBits>() : Count;
    static_assert(Count % kAtOnce == 0);
    [&]<int... Group>(std::integer_sequence<int, Group...>) TANDEM_INLINE {
      (add_group<First + kAtOnce * Group, Rows>(dots, x, block, std::make_integer_sequence<int, kAtOnce>()), ...);
    }
    (std::make_integer_sequence<int, Count / kAtOnce>());
  }

 private:
  template <int First, int Rows, int... Quad>
  TANDEM_INLINE void add_group(ints (&dots)[Rows][kVectors], const activation_block* const (&x)[Rows],
                               std::int64_t block, std::integer_sequence<int, Quad...>) const {
    pairs sums[Rows][kVectors];
    (add_quad<First + Quad, Quad == 0>(sums, x, block), ...);
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      TANDEM_UNROLL
      for (int v = 0; v < kVectors; ++v) dots[r][v] = V::add_widened(dots[r][v], sums[r][v]);
    }
  }

  template <int Quad, bool IsFirst, int Rows>
  TANDEM_INLINE void add_quad(pairs (&sums)[Rows][kVectors], const activation_block* const (&x)[Rows],
                              std::int64_t block) const {
    using factor = typename V::template factor<kBits>;
    const factor low(Format::plane::template quad<V, Quad>(plane, 0));
    const factor high(Format::plane::template quad<V, Quad>(plane, V::kLanes));
    static_assert(kVectors == 2);
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const typename V::bytes inputs = V::broadcast_quad(x[r][block].quants + 4 * Quad);
      const pairs first = low.times(inputs);
      const pairs second = high.times(inputs);
      sums[r][0] = IsFirst ? first : V::add_pairs(sums[r][0], first);
      sums[r][1] = IsFirst ? second : V::add_pairs(sums[r][1], second);
    }
  }
};

}  // namespace
}  // namespace tandem::gpu::host

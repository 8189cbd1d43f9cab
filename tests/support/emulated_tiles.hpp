#pragma once
/// AMX tile registers in plain C++, by the Intel SDM (volume 2, palette 1), so that AMX kernels can be tested on any
/// machine. Stricter than a machine only in what it throws: std::logic_error for whatever raises #GP or #UD there.
///
/// Semantics that kernels rely on:
///   shapes      A tile has `rows` rows of `row_bytes` bytes. Loading shapes zeroes every tile.
///   load, zero  What lies beyond a tile's own rows and bytes becomes zero.
///   products    Sum has the rows of Left and the row bytes of Right; K = Left's row bytes / 4 must be Right's rows. The
///               three are different tiles.
///   int8        Per element and k four products are added as int32, wrapping.
///   bf16        Per element two fp32 totals start at zero: even (2k) and odd (2k+1) products, k ascending, each by one
///               fused multiply-add. Then even + odd is rounded, and added to Sum with one more rounding. Nearest even;
///               denormals are read as zero and written as zero, with their sign. (A result that only rounding lifts to
///               the smallest normal number is kept here; a machine may flush it.)
/// Each thread has tiles of its own.

#include <cstddef>
#include <cstdint>

#include "gpu/host/kernels/tile_shapes.hpp"

namespace tandem::test {

/// The operations with tile numbers that are known at run time only.
namespace emulated {
void load_shapes(const gpu::host::tile_shapes& shapes);
void release();
void zero(int tile);
void load(int tile, const std::byte* from, std::size_t stride);
void store(int tile, std::byte* to, std::size_t stride);
void dot_int8(int sum, int left, int right);
void dot_bf16(int sum, int left, int right);
}  // namespace emulated

/// The interface of gpu/host/kernels/amx_tiles.hpp.
struct emulated_tiles {
  static void load_shapes(const gpu::host::tile_shapes& shapes) { emulated::load_shapes(shapes); }
  static void release() { emulated::release(); }
  template <int Tile>
  static void zero() {
    emulated::zero(Tile);
  }
  template <int Tile>
  static void load(const std::byte* from, std::size_t stride) {
    emulated::load(Tile, from, stride);
  }
  template <int Tile>
  static void store(std::byte* to, std::size_t stride) {
    emulated::store(Tile, to, stride);
  }
  template <int Sum, int Left, int Right>
  static void dot_bf16() {
    emulated::dot_bf16(Sum, Left, Right);
  }
};

}  // namespace tandem::test

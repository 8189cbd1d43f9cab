#pragma once
/// AMX tile registers: the machine's own. What each operation computes is written out in
/// tests/support/emulated_tiles.hpp, which has the same interface and runs everywhere.
///
/// The instructions are written as assembly because the intrinsics of GCC 12 tell the compiler too little: its
/// tileloadd declares no read of memory and its ldtilecfg one of 8 bytes, so stores to a scratch tile before them may
/// be dropped. Here every operation that touches memory says so. Tile numbers are constants of the instruction.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/host/kernels/tile_shapes.hpp"

namespace tandem::gpu::host {

/// The shapes of this thread's tiles; palette 0: none. One place for all files that include this one.
tile_shapes& loaded_tile_shapes();

namespace {

struct amx_tiles {
  /// Sets the shapes of all tiles, whose contents are then unknown. About 50 ns, so shapes that are loaded already are
  /// left: nothing else on this thread uses tiles before release().
  static void load_shapes(const tile_shapes& shapes) {
    tile_shapes& loaded = loaded_tile_shapes();
    if (std::memcmp(&loaded, &shapes, sizeof shapes) == 0) return;
    asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
    loaded = shapes;
  }
  /// Back to no tiles, so that the thread's state is small again and the core may sleep deeply.
  static void release() {
    if (loaded_tile_shapes().palette == 0) return;
    asm volatile("tilerelease" : : : "memory");
    loaded_tile_shapes().palette = 0;
  }

  template <int Tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
  }
  /// Row r from `from` + r · stride bytes.
  template <int Tile>
  static void load(const std::byte* from, std::size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(Tile) : "memory");
  }
  template <int Tile>
  static void store(std::byte* to, std::size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(Tile) : "memory");
  }

  /// Sum[m][n] += Σ_k Σ_{i<2} Left[m][2k+i] · Right[k][2n+i], bf16 into fp32.
  template <int Sum, int Left, int Right>
  static void dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(Left), "i"(Right));
  }
};

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// The 64 bytes that ldtilecfg reads: rows and bytes per row of each tile register.

#include <cstddef>
#include <cstdint>

namespace tandem::gpu::host {

inline constexpr int kTileRows = 16;
inline constexpr std::size_t kTileRowBytes = 64;

/// Palette 1 has 8 tiles of at most 16 rows of 64 bytes. A tile with 0 rows may not be used.
struct alignas(64) tile_shapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int tile, int tile_rows, std::size_t bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(tile_shapes) == 64);

}  // namespace tandem::gpu::host

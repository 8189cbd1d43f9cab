#include "tests/support/emulated_tiles.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "model/half.hpp"

namespace tandem::test::emulated {
namespace {

using gpu::host::kTileRowBytes;
using gpu::host::kTileRows;
using gpu::host::tile_shapes;

constexpr int kTiles = 8;

struct tile {
  int rows = 0;
  int row_bytes = 0;
  std::byte at[kTileRows][kTileRowBytes] = {};
};

thread_local bool configured = false;
thread_local tile tiles[kTiles];

void require(bool holds, const std::string& rule) {
  if (!holds) throw std::logic_error("AMX: " + rule);
}

tile& used(int number) {
  require(configured, "no shapes are loaded");
  require(number >= 0 && number < kTiles, "there are tiles 0 to 7");
  require(tiles[number].rows > 0, "tile " + std::to_string(number) + " has no shape");
  return tiles[number];
}

void clear_contents(tile& t) {
  std::memset(t.at, 0, sizeof t.at);
}

void check_shapes(const tile_shapes& shapes) {
  require(shapes.palette == 1, "the palette is 1");
  require(shapes.start_row == 0, "the first row is 0");
  for (const std::uint8_t byte : shapes.reserved) require(byte == 0, "reserved bytes are zero");
  for (int i = 0; i < 16; ++i) {
    require(shapes.rows[i] <= kTileRows && shapes.row_bytes[i] <= kTileRowBytes, "a tile has 16 rows of 64 bytes");
    require((shapes.rows[i] == 0) == (shapes.row_bytes[i] == 0), "rows and bytes are zero together");
    require(i < kTiles || shapes.rows[i] == 0, "there are tiles 0 to 7");
  }
}

/// The three tiles of a product.
struct operands {
  tile& sum;
  const tile& left;
  const tile& right;
};

operands checked(int sum, int left, int right) {
  require(sum != left && sum != right && left != right, "the tiles of a product differ");
  const operands all{used(sum), used(left), used(right)};
  require(all.sum.row_bytes % 4 == 0 && all.left.row_bytes % 4 == 0 && all.right.row_bytes % 4 == 0,
          "rows are whole groups of four bytes");
  require(all.sum.rows == all.left.rows, "sum and left have as many rows");
  require(all.left.row_bytes / 4 == all.right.rows, "the right tile has a row for every four bytes of the left");
  require(all.sum.row_bytes == all.right.row_bytes, "sum and right have as many bytes in a row");
  return all;
}

/// Element `index` of a row, of any type.
template <class T>
T element(const std::byte* row, int index) {
  T value;
  std::memcpy(&value, row + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void set_element(std::byte* row, int index, T value) {
  std::memcpy(row + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

float flushed(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}

float bf16_element(const std::byte* row, int index) {
  return flushed(model::bfloat16_to_float(element<std::uint16_t>(row, index)));
}

std::uint32_t quad_dot(const std::byte* left, const std::byte* right) {
  std::uint32_t dot = 0;
  for (int i = 0; i < 4; ++i) {
    dot += static_cast<std::uint32_t>(element<std::int8_t>(left, i) * element<std::int8_t>(right, i));
  }
  return dot;
}

void zero_beyond(tile& t) {
  for (int row = 0; row < kTileRows; ++row) {
    const std::size_t own = row < t.rows ? static_cast<std::size_t>(t.row_bytes) : 0;
    std::memset(t.at[row] + own, 0, kTileRowBytes - own);
  }
}

}  // namespace

void load_shapes(const tile_shapes& shapes) {
  check_shapes(shapes);
  configured = true;
  for (int i = 0; i < kTiles; ++i) {
    tiles[i].rows = shapes.rows[i];
    tiles[i].row_bytes = shapes.row_bytes[i];
    clear_contents(tiles[i]);
  }
}

void release() {
  configured = false;
  for (tile& t : tiles) t = tile{};
}

void zero(int number) {
  clear_contents(used(number));
}

void load(int number, const std::byte* from, std::size_t stride) {
  tile& to = used(number);
  for (int row = 0; row < to.rows; ++row) {
    std::memcpy(to.at[row], from + static_cast<std::size_t>(row) * stride, static_cast<std::size_t>(to.row_bytes));
  }
  zero_beyond(to);
}

void store(int number, std::byte* to, std::size_t stride) {
  const tile& from = used(number);
  for (int row = 0; row < from.rows; ++row) {
    std::memcpy(to + static_cast<std::size_t>(row) * stride, from.at[row], static_cast<std::size_t>(from.row_bytes));
  }
}

void dot_int8(int sum, int left, int right) {
  const operands all = checked(sum, left, right);
  for (int m = 0; m < all.sum.rows; ++m) {
    for (int n = 0; n < all.sum.row_bytes / 4; ++n) {
      auto total = element<std::uint32_t>(all.sum.at[m], n);
      for (int k = 0; k < all.right.rows; ++k) total += quad_dot(all.left.at[m] + 4 * k, all.right.at[k] + 4 * n);
      set_element(all.sum.at[m], n, total);
    }
  }
  zero_beyond(all.sum);
}

void dot_bf16(int sum, int left, int right) {
  const operands all = checked(sum, left, right);
  for (int m = 0; m < all.sum.rows; ++m) {
    for (int n = 0; n < all.sum.row_bytes / 4; ++n) {
      float totals[2] = {0.0F, 0.0F};
      for (int k = 0; k < all.right.rows; ++k) {
        for (int odd = 0; odd < 2; ++odd) {
          const float x = bf16_element(all.left.at[m], 2 * k + odd);
          const float w = bf16_element(all.right.at[k], 2 * n + odd);
          totals[odd] = flushed(std::fma(x, w, totals[odd]));
        }
      }
      const float pair = flushed(totals[0] + totals[1]);
      set_element(all.sum.at[m], n, flushed(flushed(element<float>(all.sum.at[m], n)) + pair));
    }
  }
  zero_beyond(all.sum);
}

}  // namespace tandem::test::emulated

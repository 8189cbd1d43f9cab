/// The emulation of AMX tiles against results worked out by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "gpu/host/bf16.hpp"
#include "tests/support/emulated_tiles.hpp"

namespace tandem::test {
namespace {

using gpu::host::float_to_bf16;
using gpu::host::tile_shapes;

/// Sum: rows × 64 bytes; left: rows × bytes; right: bytes / 4 × 64 bytes.
tile_shapes product_shapes(int rows, int left_bytes) {
  tile_shapes shapes;
  shapes.set(0, rows, 64);
  shapes.set(1, rows, static_cast<std::size_t>(left_bytes));
  shapes.set(2, left_bytes / 4, 64);
  return shapes;
}

class emulated_tile : public testing::Test {
 protected:
  ~emulated_tile() override { emulated::release(); }
};

TEST_F(emulated_tile, int8_products_add_four_inputs_per_row_of_the_right_tile) {
  emulated::load_shapes(product_shapes(2, 8));
  std::int8_t left[2][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {-128, 127, 0, 0, 0, 0, 0, 1}};
  std::int8_t right[2][64] = {};
  for (int i = 0; i < 4; ++i) right[0][4 * 3 + i] = 10;   // column 3
  for (int i = 0; i < 4; ++i) right[1][4 * 3 + i] = -128;
  std::int32_t sums[2][16] = {};
  sums[0][3] = 1000;
  emulated::load(0, reinterpret_cast<std::byte*>(sums), 64);
  emulated::load(1, reinterpret_cast<std::byte*>(left), 8);
  emulated::load(2, reinterpret_cast<std::byte*>(right), 64);
  emulated::dot_int8(0, 1, 2);
  emulated::store(0, reinterpret_cast<std::byte*>(sums), 64);
  EXPECT_EQ(sums[0][3], 1000 + 10 * (1 + 2 + 3 + 4) - 128 * (5 + 6 + 7 + 8));
  EXPECT_EQ(sums[1][3], 10 * (-128 + 127) - 128);
  EXPECT_EQ(sums[0][2], 0);
}

TEST_F(emulated_tile, loading_zeroes_what_lies_beyond_the_shape) {
  tile_shapes shapes;
  shapes.set(3, 16, 64);
  emulated::load_shapes(shapes);
  std::byte ones[16 * 64];
  std::memset(ones, 1, sizeof ones);
  emulated::load(3, ones, 64);
  shapes.set(3, 2, 8);
  emulated::load_shapes(shapes);
  emulated::load(3, ones, 64);
  std::byte out[16 * 64] = {};
  emulated::store(3, out, 64);
  for (int i = 0; i < 16 * 64; ++i) EXPECT_EQ(out[i] == std::byte{1}, i / 64 < 2 && i % 64 < 8) << i;
}

/// One output of a bf16 product over the pairs of `x` and `w`, added to `start`.
float bf16_product(const std::vector<float>& x, const std::vector<float>& w, float start) {
  emulated::load_shapes(product_shapes(1, static_cast<int>(x.size()) * 2));
  std::vector<std::uint16_t> left(x.size());
  std::vector<std::uint16_t> right(x.size() / 2 * 32);
  for (std::size_t k = 0; k < x.size(); ++k) {
    left[k] = float_to_bf16(x[k]);
    right[k / 2 * 32 + k % 2] = float_to_bf16(w[k]);
  }
  float sums[16] = {start};
  emulated::load(0, reinterpret_cast<std::byte*>(sums), 64);
  emulated::load(1, reinterpret_cast<std::byte*>(left.data()), 64);
  emulated::load(2, reinterpret_cast<std::byte*>(right.data()), 64);
  emulated::dot_bf16(0, 1, 2);
  emulated::store(0, reinterpret_cast<std::byte*>(sums), 64);
  return sums[0];
}

TEST_F(emulated_tile, bf16_products_sum_even_and_odd_inputs_apart_and_add_the_sum_last) {
  // Even: 2^24 + 1 rounds to 2^24, twice. In one chain the two ones would have survived; in pairs as well.
  EXPECT_EQ(bf16_product({0x1p24F, 1, 1, 0}, {1, 1, 1, 0}, 0), 0x1p24F);
  EXPECT_EQ(bf16_product({0x1p24F, 1, 0, 1}, {1, 1, 0, 1}, 0), 0x1p24F + 2);
  // The former sum joins after even + odd: 1 is lost beside 2^24, not beside 2^24 − 2^24.
  EXPECT_EQ(bf16_product({0x1p24F, -0x1p24F}, {1, 1}, 1), 1);
  EXPECT_EQ(bf16_product({0x1p24F, 0}, {1, 0}, 1), 0x1p24F);
}

TEST_F(emulated_tile, bf16_products_are_fused_into_their_sum) {
  // (1 + 2^-7)² − 1 is exact only when the product is not rounded to bf16 or before the addition.
  EXPECT_EQ(bf16_product({-1, 0, 1 + 0x1p-7F, 0}, {1, 0, 1 + 0x1p-7F, 0}, 0), 0x1p-6F + 0x1p-14F);
}

TEST_F(emulated_tile, bf16_products_read_and_write_denormals_as_zero) {
  EXPECT_EQ(bf16_product({0x1p-130F, 0}, {0x1p120F, 0}, 0), 0);
  EXPECT_EQ(bf16_product({0x1p-100F, 0}, {0x1p-30F, 0}, 0), 0);
  EXPECT_EQ(bf16_product({0x1p-100F, 0}, {0x1p-26F, 0}, 0), 0x1p-126F);
  EXPECT_EQ(bf16_product({0, 0}, {0, 0}, 0x1p-130F), 0);
  EXPECT_TRUE(std::signbit(bf16_product({-0x1p-100F, -0x1p-100F}, {0x1p-30F, 0x1p-30F}, -0.0F)));
}

TEST_F(emulated_tile, bf16_products_carry_nan_and_infinity) {
  EXPECT_TRUE(std::isnan(bf16_product({std::numeric_limits<float>::quiet_NaN(), 0}, {1, 0}, 0)));
  EXPECT_EQ(bf16_product({std::numeric_limits<float>::infinity(), 0}, {1, 0}, 0),
            std::numeric_limits<float>::infinity());
}

TEST_F(emulated_tile, what_a_machine_refuses_is_refused) {
  EXPECT_THROW(emulated::zero(0), std::logic_error);  // no shapes
  tile_shapes shapes = product_shapes(4, 32);
  emulated::load_shapes(shapes);
  EXPECT_THROW(emulated::zero(3), std::logic_error);           // no shape of its own
  EXPECT_THROW(emulated::dot_int8(0, 0, 2), std::logic_error);  // the same tile twice
  EXPECT_THROW(emulated::dot_int8(0, 2, 1), std::logic_error);  // shapes that do not fit
  shapes.rows[0] = 17;
  EXPECT_THROW(emulated::load_shapes(shapes), std::logic_error);
  shapes = product_shapes(4, 32);
  shapes.row_bytes[1] = 0;
  EXPECT_THROW(emulated::load_shapes(shapes), std::logic_error);
  shapes = product_shapes(4, 32);
  shapes.reserved[3] = 1;
  EXPECT_THROW(emulated::load_shapes(shapes), std::logic_error);
}

}  // namespace
}  // namespace tandem::test

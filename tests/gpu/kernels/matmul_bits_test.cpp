/// Invariant 4 at its root: the bits of an output never depend on the row count, the tile range or the neighbours.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "made_tensor.hpp"

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

constexpr std::int32_t kMaxRows = 70;
constexpr std::int32_t kRowCounts[] = {1, 2, 3, 5, 8, 16, 17, 33, 64, 70};

struct shape {
  std::int64_t outputs;
  std::int32_t columns;
};

/// Shapes that the kind's block allows: one block, an odd number of blocks, several; with and without an output tail.
std::vector<shape> shapes_of(tensor_kind kind) {
  switch (model::traits(kind).block_elements) {
    case 1:
      return {{16, 1}, {40, 31}, {77, 95}, {33, 576}};
    case 32:
      return {{16, 32}, {40, 96}, {77, 544}, {33, 576}};
    default:
      return {{16, 256}, {77, 512}, {40, 1792}};
  }
}

std::size_t differing_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) ++count;
  }
  return count;
}

/// Each row by itself, each tile by itself: what every other way to compute must agree with.
std::vector<float> one_at_a_time(const packed_matrix& matrix, isa set, const std::vector<float>& inputs) {
  std::vector<float> out(static_cast<std::size_t>(kMaxRows * matrix.rows()));
  activations x(matrix.wants(), 1, static_cast<std::int32_t>(matrix.columns()));
  for (std::int64_t row = 0; row < kMaxRows; ++row) {
    x.convert(set, inputs.data() + row * matrix.columns(), 0, 1);
    for (std::int32_t tile = 0; tile < matrix.tiles(); ++tile) {
      matrix.multiply(x, 1, tile, tile + 1, out.data() + row * matrix.rows(), matrix.rows());
    }
  }
  return out;
}

void expect_same_bits(const packed_matrix& matrix, isa set, const std::string& what) {
  const auto columns = static_cast<std::int32_t>(matrix.columns());
  const std::vector<float> inputs = made_inputs(kMaxRows, columns, 7);
  const std::vector<float> expected = one_at_a_time(matrix, set, inputs);
  activations x(matrix.wants(), kMaxRows, columns);
  x.convert(set, inputs.data(), 0, 3);
  x.convert(set, inputs.data(), 3, kMaxRows);
  for (const std::int32_t rows : kRowCounts) {
    for (std::int32_t split = 0; split <= matrix.tiles(); ++split) {
      // Rows beyond `rows` must stay as they were, so they are compared with the expectation they are filled with.
      std::vector<float> out = expected;
      std::fill_n(out.begin(), rows * matrix.rows(), std::numeric_limits<float>::quiet_NaN());
      matrix.multiply(x, rows, split, matrix.tiles(), out.data(), matrix.rows());
      matrix.multiply(x, rows, 0, split, out.data(), matrix.rows());
      ASSERT_EQ(differing_bits(out, expected), 0U) << what << " rows " << rows << " split at tile " << split;
    }
  }
}

class matmul_bits : public testing::TestWithParam<isa> {};

TEST_P(matmul_bits, of_every_kind_do_not_depend_on_rows_or_tile_range) {
  for (const tensor_kind kind : kAllKinds) {
    for (const shape& size : shapes_of(kind)) {
      const made_tensor made(kind, size.outputs, size.columns, 3);
      for (const packing how : {packing::native, packing::native_precise}) {
        const packed_matrix matrix = packed({&made.weight}, how, GetParam());
        expect_same_bits(matrix, GetParam(), made.weight.name + " columns " + std::to_string(size.columns));
      }
    }
  }
}

TEST_P(matmul_bits, of_bf16_and_fp32_packing_do_not_depend_on_rows_or_tile_range) {
  for (const packing how : {packing::bf16, packing::fp32}) {
    const made_tensor made(tensor_kind::q8_0, 77, 544, 3);
    expect_same_bits(packed({&made.weight}, how, GetParam()), GetParam(), how == packing::bf16 ? "bf16" : "fp32");
  }
}

TEST_P(matmul_bits, of_weights_rounded_at_load_do_not_depend_on_rows_or_tile_range) {
  for (const tensor_kind kind : {tensor_kind::f32, tensor_kind::f16, tensor_kind::bf16}) {
    const made_tensor made(kind, 77, 544, 3);
    for (const packing how : {packing::int8, packing::int8_precise})
      expect_same_bits(packed({&made.weight}, how, GetParam()), GetParam(), made.weight.name + " rounded");
  }
}

TEST_P(matmul_bits, of_stacked_mixed_kinds_do_not_depend_on_rows_or_tile_range) {
  const made_tensor query(tensor_kind::q4_k, 40, 512, 1);
  const made_tensor value(tensor_kind::q6_k, 24, 512, 2);
  const packed_matrix matrix = packed({&query.weight, &value.weight}, packing::native, GetParam());
  EXPECT_EQ(matrix.tiles(), matrix.wants() == activation_kind::bf16_columns ? 3 : 5);
  expect_same_bits(matrix, GetParam(), "q4_k and q6_k");
}

TEST_P(matmul_bits, of_a_row_do_not_depend_on_poisonous_neighbours) {
  for (const tensor_kind kind :
       {tensor_kind::q4_k, tensor_kind::q6_k, tensor_kind::q8_0, tensor_kind::f32, tensor_kind::bf16}) {
    const made_tensor made(kind, 40, 256, 5);
    const packed_matrix matrix = packed({&made.weight}, packing::native, GetParam());
    std::vector<float> inputs = made_inputs(3, 256, 9);
    const std::vector<float> clean = product(matrix, GetParam(), inputs, 3);
    inputs[10] = std::numeric_limits<float>::quiet_NaN();
    inputs[256 * 2 + 200] = std::numeric_limits<float>::infinity();
    const std::vector<float> poisoned = product(matrix, GetParam(), inputs, 3);
    for (std::size_t n = 0; n < 40; ++n) {
      EXPECT_TRUE(std::isnan(poisoned[n]));
      EXPECT_EQ(std::bit_cast<std::uint32_t>(poisoned[40 + n]), std::bit_cast<std::uint32_t>(clean[40 + n]));
      EXPECT_FALSE(std::isfinite(poisoned[80 + n]));
    }
  }
}

TEST_P(matmul_bits, of_a_row_do_not_depend_on_which_neighbours_keep_a_second_term) {
  constexpr std::int32_t kRows = 13;
  constexpr std::int32_t kColumns = 2304;
  for (const tensor_kind kind : {tensor_kind::q4_1, tensor_kind::q4_k, tensor_kind::q6_k, tensor_kind::q8_0}) {
    const made_tensor made(kind, 40, kColumns, 5);
    const packed_matrix matrix = packed({&made.weight}, packing::native_precise, GetParam());
    std::vector<float> inputs = made_inputs(kRows, kColumns, 9);
    for (std::int32_t row = 1; row < kRows; ++row)  // ever more blocks that stand out, from row to row
      for (std::int32_t i = 0; i < row * row; ++i)
        inputs[static_cast<std::size_t>(row * kColumns + (i * 97) % kColumns)] *= 40;
    const std::vector<float> together = product(matrix, GetParam(), inputs, kRows);
    for (std::int32_t row = 0; row < kRows; ++row) {
      const auto from = inputs.begin() + row * kColumns;
      const std::vector<float> alone = product(matrix, GetParam(), {from, from + kColumns}, 1);
      EXPECT_EQ(differing_bits(alone, {together.begin() + row * 40, together.begin() + (row + 1) * 40}), 0U) << row;
    }
  }
}

/// More rows than one pass takes: 512 of narrow matrices with AMX, 64 of wide ones.
TEST_P(matmul_bits, of_a_row_are_the_same_in_every_pass) {
  for (const auto& [columns, rows] : {std::pair(32, 545), std::pair(8704, 70)}) {
    const made_tensor made(tensor_kind::q4_1, 33, columns, 5);
    const packed_matrix matrix = packed({&made.weight}, packing::native, GetParam());
    const std::vector<float> inputs = made_inputs(rows, columns, 6);
    const std::vector<float> together = product(matrix, GetParam(), inputs, rows);
    for (const std::int32_t row : {0, 63, 64, rows - 34, rows - 1}) {
      const auto from = inputs.begin() + std::int64_t{row} * columns;
      const std::vector<float> alone = product(matrix, GetParam(), {from, from + columns}, 1);
      EXPECT_EQ(differing_bits(alone, {together.begin() + row * 33, together.begin() + (row + 1) * 33}), 0U) << row;
    }
  }
}

TEST_P(matmul_bits, of_quantised_kinds_are_those_of_the_portable_kernels) {
  for (const tensor_kind kind : kAllKinds) {
    const std::int32_t columns = shapes_of(kind).back().columns;
    const made_tensor made(kind, 77, columns, 11);
    for (const packing how : {packing::native, packing::native_precise, packing::int8, packing::int8_precise}) {
      const packed_matrix here = packed({&made.weight}, how, GetParam());
      if (here.wants() != activation_kind::int8 && here.wants() != activation_kind::int8_pair) continue;
      const packed_matrix there = packed({&made.weight}, how, isa::portable);
      const std::vector<float> inputs = made_inputs(9, columns, 13);
      EXPECT_EQ(differing_bits(product(here, GetParam(), inputs, 9), product(there, isa::portable, inputs, 9)), 0U)
          << made.weight.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(on, matmul_bits, testing::ValuesIn(offered_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace tandem::gpu::host

/// AMX kernels, emulated where the machine has no AMX: int8 formats have the bits of the vector kernels, bf16 the
/// accuracy of its summation and the same bits for every row count.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "amx_lab.hpp"
#include "gpu/host/bf16.hpp"
#include "gpu/host/kernels/table_check.hpp"
#include "gpu/host/kernels/tile_shapes.hpp"
#include "gpu/reference/matmul_reference.hpp"
#include "model/half.hpp"
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
#include "tests/support/trapped_tiles.hpp"
#endif

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

constexpr std::int32_t kRowCounts[] = {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 48, 64, 70};
constexpr std::int32_t kMostRows = 160;
constexpr tensor_kind kInt8Kinds[] = {tensor_kind::q4_0, tensor_kind::q4_1, tensor_kind::q5_0, tensor_kind::q5_1,
                                      tensor_kind::q8_0, tensor_kind::q4_k, tensor_kind::q5_k, tensor_kind::q6_k};

/// One block, units and chunks of 16 blocks that are not full, several chunks.
std::vector<std::int32_t> columns_of(tensor_kind kind) {
  if (model::traits(kind).block_elements == 32) return {32, 96, 544, 1120};
  return {256, 768, 1280};
}

class amx_matmul : public testing::TestWithParam<amx_way> {
 protected:
  amx_matmul() {
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
    if (GetParam().is_machine_code) trap_.emplace();
#endif
  }
  const kernel_table& kernels() const { return *GetParam().table; }

#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
  std::optional<test::trapped_tiles> trap_;
#endif
};

void expect_vector_bits(const tile_lab& lab, const kernel_table& kernels, std::int32_t rows, std::int32_t outputs) {
  const std::vector<float> expected = lab.product(vector_kernels(), rows, outputs);
  EXPECT_EQ(differing(lab.product(kernels, rows, outputs), expected), 0U)
      << format_name(lab.format()) << ", " << rows << " rows, " << outputs << " outputs";
}

TEST_P(amx_matmul, of_int8_formats_has_the_bits_of_the_vector_kernels_for_every_row_count) {
  for (const tensor_kind kind : kInt8Kinds) {
    for (const std::int32_t columns : columns_of(kind)) {
      const made_tensor made(kind, 16, columns, 3);
      for (const packing how : {packing::native, packing::native_precise}) {
        SCOPED_TRACE(made.weight.name + " columns " + std::to_string(columns));
        const tile_lab lab(made, how, made_inputs(70, columns, 5));
        for (const std::int32_t rows : kRowCounts) expect_vector_bits(lab, kernels(), rows, kTileOutputs);
      }
    }
  }
}

TEST_P(amx_matmul, of_int8_formats_has_the_bits_of_the_vector_kernels_when_rows_exceed_one_unpacking) {
  for (const tensor_kind kind : {tensor_kind::q4_1, tensor_kind::q6_k}) {
    const made_tensor made(kind, 16, 768, 7);
    const tile_lab lab(made, packing::native, made_inputs(kMostRows, 768, 9));
    for (const std::int32_t rows : {128, 129, 139, kMostRows}) expect_vector_bits(lab, kernels(), rows, kTileOutputs);
  }
}

TEST_P(amx_matmul, writes_only_the_outputs_a_tile_has) {
  for (const tensor_kind kind : {tensor_kind::q4_0, tensor_kind::q5_k, tensor_kind::q6_k}) {
    const made_tensor made(kind, 16, 256, 11);
    const tile_lab lab(made, packing::native, made_inputs(70, 256, 13));
    for (std::int32_t outputs = 1; outputs <= kTileOutputs; ++outputs) {
      for (const std::int32_t rows : {16, 31, 70}) expect_vector_bits(lab, kernels(), rows, outputs);
    }
  }
}

TEST_P(amx_matmul, of_int8_formats_keeps_the_bits_for_nan_infinity_denormals_and_extremes) {
  const float values[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::max(),       std::numeric_limits<float>::lowest(),
                          -1.1e-35F,                               0.0F};
  for (const tensor_kind kind : kInt8Kinds) {
    const made_tensor made(kind, 16, 512, 17);
    std::vector<float> inputs = made_inputs(33, 512, 19);
    for (std::size_t i = 0; i < std::size(values); ++i) {
      std::fill_n(inputs.begin() + static_cast<std::ptrdiff_t>((3 * i + 1) * 512 + 64), 32, values[i]);
    }
    for (const packing how : {packing::native, packing::native_precise}) {
      const tile_lab lab(made, how, inputs);
      expect_vector_bits(lab, kernels(), 33, kTileOutputs);
      const std::vector<float> out = lab.product(kernels(), 33, kTileOutputs);
      EXPECT_TRUE(std::isnan(out[16]));      // row 1 holds the NaNs
      EXPECT_TRUE(std::isfinite(out[0]));    // its neighbours do not
      EXPECT_TRUE(std::isfinite(out[2 * 16]));
    }
  }
}

TEST_P(amx_matmul, of_int8_formats_is_exact_for_saturated_inputs_and_weights) {
  for (const tensor_kind kind : kInt8Kinds) {
    for (const int fill : {0x00, 0xFF, 0x80, 0x7F}) {
      made_tensor made(kind, 16, 256, 23);
      const auto block = static_cast<std::size_t>(model::traits(kind).block_bytes);
      const std::size_t head = model::traits(kind).block_elements == 256 ? 16 : 4;
      for (std::size_t i = 0; i < made.bytes.size(); ++i) {
        const bool is_quant = kind == tensor_kind::q6_k ? i % block < 192 : i % block >= head;
        if (is_quant) made.bytes[i] = static_cast<std::byte>(fill);
      }
      std::vector<float> inputs(std::size_t{32} * 256, 127.0F);
      std::fill_n(inputs.begin(), 16 * 256, -127.0F);
      expect_vector_bits(tile_lab(made, packing::native, inputs), kernels(), 32, kTileOutputs);
    }
  }
}

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = model::bfloat16_to_float(float_to_bf16(value));
  return values;
}

TEST_P(amx_matmul, of_bf16_meets_the_bound_of_its_summation) {
  for (const std::int32_t columns : {1, 2, 31, 32, 33, 77, 577}) {
    const made_tensor made(tensor_kind::f32, 16, columns, 29);
    const std::vector<float> inputs = made_inputs(70, columns, 31);
    const tile_lab lab(made, packing::bf16, inputs);
    std::vector<double> exact(70 * 16);
    std::vector<double> magnitude(exact.size());
    reference::matmul_reference(rounded(inputs), lab.weights(), columns, exact, magnitude);
    for (const std::int32_t rows : kRowCounts) {
      const std::vector<float> out = lab.product(kernels(), rows, kTileOutputs);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_LE(std::abs(double{out[i]} - exact[i]), (columns / 2 + 4) * 0x1p-24 * magnitude[i] + 1e-37)
            << columns << " columns, " << rows << " rows, element " << i;
      }
    }
  }
}

TEST_P(amx_matmul, of_bf16_gives_a_row_the_same_bits_in_any_company) {
  for (const std::int32_t columns : {64, 77}) {
    const made_tensor made(tensor_kind::bf16, 16, columns, 37);
    const tile_lab lab(made, packing::native, made_inputs(70, columns, 41));
    std::vector<float> alone;
    for (std::int32_t row = 0; row < 70; ++row) {
      const std::vector<float> one = lab.product(kernels(), 1, 13, row);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    for (const std::int32_t rows : kRowCounts) {
      const std::vector<float> expected(alone.begin(), alone.begin() + rows * 13);
      EXPECT_EQ(differing(lab.product(kernels(), rows, 13), expected), 0U) << columns << " columns, " << rows << " rows";
    }
  }
}

TEST_P(amx_matmul, of_bf16_writes_only_the_outputs_a_tile_has) {
  const made_tensor made(tensor_kind::bf16, 16, 40, 43);
  const tile_lab lab(made, packing::native, made_inputs(70, 40, 47));
  const std::vector<float> all = lab.product(kernels(), 70, kTileOutputs);
  for (std::int32_t outputs = 1; outputs <= kTileOutputs; ++outputs) {
    for (const std::int32_t rows : {1, 17, 70}) {
      const std::vector<float> out = lab.product(kernels(), rows, outputs);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t row = i / static_cast<std::size_t>(outputs);
        ASSERT_EQ(out[i], all[row * 16 + i % static_cast<std::size_t>(outputs)]);
      }
    }
  }
}

TEST_P(amx_matmul, of_bf16_confines_nan_and_infinity_to_their_rows_and_takes_denormals_as_zero) {
  const made_tensor made(tensor_kind::bf16, 16, 96, 53);
  std::vector<float> inputs = made_inputs(20, 96, 59);
  const tile_lab clean(made, packing::native, inputs);
  inputs[1 * 96 + 40] = std::numeric_limits<float>::quiet_NaN();
  inputs[3 * 96 + 95] = std::numeric_limits<float>::infinity();
  std::fill_n(inputs.begin() + 5 * 96, 96, 1e-39F);
  const tile_lab lab(made, packing::native, inputs);
  const std::vector<float> out = lab.product(kernels(), 20, kTileOutputs);
  const std::vector<float> expected = clean.product(kernels(), 20, kTileOutputs);
  for (std::size_t n = 0; n < 16; ++n) {
    EXPECT_TRUE(std::isnan(out[16 + n]));
    EXPECT_FALSE(std::isfinite(out[3 * 16 + n]));
    EXPECT_EQ(out[5 * 16 + n], 0.0F);
  }
  for (const std::size_t row : {0, 2, 4, 6, 19}) {
    for (std::size_t n = 0; n < 16; ++n) EXPECT_EQ(out[row * 16 + n], expected[row * 16 + n]);
  }
}

#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
TEST_P(amx_matmul, runs_tile_instructions_from_the_promised_row_count_on) {
  if (!GetParam().is_machine_code) GTEST_SKIP() << "this way runs no tile instructions";
  if (choose_isa("amx")) GTEST_SKIP() << "this machine runs them itself, so none are counted";
  const std::int32_t from = kernels().matmul[0] == amx_kernels().matmul[0] ? kTileRows : kManyRows;
  const made_tensor made(tensor_kind::q4_0, 16, 64, 61);
  const tile_lab lab(made, packing::native, made_inputs(64, 64, 67));
  const long before = trap_->count();
  lab.product(kernels(), from - 1, kTileOutputs);
  EXPECT_EQ(trap_->count(), before);  // no shapes were loaded, so none are released
  lab.product(kernels(), from, kTileOutputs);
  // Shapes, per group and block a weight tile, a sum cleared, an input tile, a product and a store, and the release.
  EXPECT_EQ(trap_->count(), before + 2 + from / kTileRows * 2 * 5);
}

TEST(amx_matrix, of_int8_formats_multiplies_to_the_bits_of_the_vector_kernels) {
  if (!choose_isa("avx512")) GTEST_SKIP() << "needs AVX-512";
  const test::trapped_tiles trap;
  const made_tensor query(tensor_kind::q4_k, 40, 512, 71);
  const made_tensor value(tensor_kind::q6_k, 21, 512, 73);
  const std::vector<float> inputs = made_inputs(70, 512, 79);
  for (const packing how : {packing::native, packing::native_precise}) {
    const std::vector<const model::tensor*> weights = {&query.weight, &value.weight};
    const std::vector<float> expected = product(packed(weights, how, isa::avx512), isa::avx512, inputs, 70);
    EXPECT_EQ(differing(product(packed(weights, how, isa::amx), isa::amx, inputs, 70), expected), 0U);
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(by, amx_matmul, testing::ValuesIn(amx_ways()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tandem::gpu::host

/// Weights rounded to 8 bits at load, against the bound their format promises.

#include "gpu/host/weight_rounding.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/host/packed_layout.hpp"
#include "made_tensor.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;
using weights = std::array<float, kBlockInputs>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double largest_of(const weights& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

/// In double precision: what the block stands for may differ from `values` by half a step and the rounding of one
/// fp32 division of at most 127.
void expect_bound(const weights& values) {
  const source_block block = round_block(values.data());
  const double scale = double{model::half_to_float(block.scale)};
  const double largest = largest_of(values);
  EXPECT_LE(scale, largest / 127 * (1 + 0x1p-10) + 0x1p-24);
  for (std::size_t j = 0; j < values.size(); ++j) {
    const int quant = int{block.quants[j]} - 128;
    EXPECT_LE(std::abs(quant), 127);
    ASSERT_LE(std::abs(quant * scale - double{values[j]}), scale * (0.5 + 127 * 0x1p-23)) << "value " << values[j];
  }
}

TEST(weight_rounding, of_random_blocks_of_every_size_of_number_is_within_half_a_step) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int exponent = -40; exponent <= 20; ++exponent) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      weights values;
      for (float& value : values) value = std::ldexp(normal(random), exponent);
      expect_bound(values);
    }
  }
}

TEST(weight_rounding, of_whole_multiples_of_a_half_is_exact) {
  weights values;
  for (std::size_t j = 0; j < values.size(); ++j)
    values[j] = 0.0625F * static_cast<float>(static_cast<int>(j * 8) - 121);
  values[0] = -127 * 0.0625F;
  const source_block block = round_block(values.data());
  EXPECT_EQ(model::half_to_float(block.scale), 0.0625F);
  for (std::size_t j = 0; j < values.size(); ++j)
    EXPECT_EQ(static_cast<float>(int{block.quants[j]} - 128) * 0.0625F, values[j]);
}

TEST(weight_rounding, takes_ties_to_the_even_number) {
  weights values{};
  values[0] = 127.0F;
  values[1] = 0.5F;
  values[2] = 1.5F;
  values[3] = -2.5F;
  const source_block block = round_block(values.data());
  EXPECT_EQ(block.quants[0], 255);
  EXPECT_EQ(block.quants[1], 128);
  EXPECT_EQ(block.quants[2], 130);
  EXPECT_EQ(block.quants[3], 126);
}

TEST(weight_rounding, of_zeros_and_denormals_is_zero) {
  for (const float value : {0.0F, -0.0F, std::numeric_limits<float>::denorm_min(), 1e-39F}) {
    weights values;
    values.fill(value);
    const source_block block = round_block(values.data());
    EXPECT_LE(model::half_to_float(block.scale), 0x1p-24F);
    for (const std::uint8_t quant : block.quants) EXPECT_EQ(quant, 128);
  }
}

TEST(weight_rounding, at_the_ends_of_the_fp16_range_saturates_nothing) {
  for (const float largest : {127.0F * 65504.0F, 127.0F * 0x1p-24F, 127.0F * 0x1.8p-24F, 127.0F * 0x1p-14F, 1e-6F}) {
    weights values{};
    values[3] = largest;
    values[4] = -largest / 3;
    expect_bound(values);
    EXPECT_GT(round_block(values.data()).quants[3], 128);
  }
}

TEST(weight_rounding, poisons_blocks_it_cannot_hold) {
  for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 8.4e6F, 3e38F}) {
    weights values{};
    values[17] = value;
    EXPECT_TRUE(std::isnan(model::half_to_float(round_block(values.data()).scale))) << value;
  }
}

/// The largest error of a matrix packed with int8, in steps of its block's scale.
double worst_error_in_steps(const made_tensor& made, isa set) {
  const packed_matrix matrix = packed({&made.weight}, packing::int8, set);
  EXPECT_EQ(matrix.wants(), activation_kind::int8);
  const std::vector<float> exact = made.values();
  std::vector<float> row(static_cast<std::size_t>(matrix.columns()));
  double worst = 0;
  for (std::int64_t n = 0; n < matrix.rows(); ++n) {
    matrix.row(n, row.data());
    for (std::size_t block = 0; block < row.size(); block += kBlockInputs) {
      weights values;
      std::memcpy(values.data(), exact.data() + static_cast<std::size_t>(n) * row.size() + block, sizeof values);
      const double step = largest_of(values) / 127;
      for (std::size_t j = 0; j < values.size(); ++j)
        worst = std::max(worst, std::abs(double{row[block + j]} - double{values[j]}) / step);
    }
  }
  return worst;
}

TEST(packed_matrix, of_int8_packing_is_within_half_a_step_of_float_weights) {
  for (const tensor_kind kind : {tensor_kind::f32, tensor_kind::f16, tensor_kind::bf16})
    EXPECT_LE(worst_error_in_steps(made_tensor(kind, 37, 768, 3), isa::portable), 0.501) << model::traits(kind).name;
}

TEST(packed_matrix, of_int8_packing_leaves_quantised_kinds_and_odd_columns_as_they_are) {
  for (const tensor_kind kind : kAllKinds) {
    if (model::traits(kind).block_elements == 1) continue;
    const made_tensor made(kind, 20, 512, 3);
    const packed_matrix rounded = packed({&made.weight}, packing::int8, isa::portable);
    const packed_matrix native = packed({&made.weight}, packing::native, isa::portable);
    EXPECT_EQ(rounded.bytes(), native.bytes());
    std::vector<float> here(512);
    std::vector<float> there(512);
    for (std::int64_t n = 0; n < 20; ++n) {
      rounded.row(n, here.data());
      native.row(n, there.data());
      EXPECT_EQ(here, there) << made.weight.name;
    }
  }
  const made_tensor odd(tensor_kind::bf16, 20, 48, 3);
  EXPECT_EQ(packed({&odd.weight}, packing::int8, isa::portable).wants(), activation_kind::bf16);
}

TEST(packed_matrix, of_int8_packing_has_the_size_of_q8_0) {
  const made_tensor full(tensor_kind::f32, 64, 512, 1);
  const made_tensor eight(tensor_kind::q8_0, 64, 512, 1);
  EXPECT_EQ(packed({&full.weight}, packing::int8, isa::portable).bytes(), eight.bytes.size());
}

TEST(packed_matrix, of_int8_packing_mixes_rounded_and_quantised_parts) {
  const made_tensor quantised(tensor_kind::q4_k, 16, 256, 1);
  const made_tensor full(tensor_kind::f32, 16, 256, 2);
  EXPECT_EQ(packed({&quantised.weight, &full.weight}, packing::int8, isa::portable).wants(), activation_kind::int8);
  EXPECT_EQ(packed({&quantised.weight, &full.weight}, packing::int8_precise, isa::portable).wants(),
            activation_kind::int8_pair);
}

TEST(packed_matrix, of_int8_packing_refuses_weights_no_scale_can_hold_and_names_the_tensor) {
  made_tensor made(tensor_kind::f32, 20, 64, 3);
  const float large = 9e6F;
  std::memcpy(made.bytes.data() + 4 * (17 * 64 + 5), &large, sizeof large);
  const model::tensor* const parts[] = {&made.weight};
  const auto packed = packed_matrix::pack(parts, packing::int8, isa::portable,
                                          [](std::int64_t count, const auto& body) { body(0, count); });
  ASSERT_FALSE(packed.has_value());
  EXPECT_NE(packed.error().message.find(made.weight.name), std::string::npos) << packed.error().message;
}

}  // namespace
}  // namespace tandem::gpu::host

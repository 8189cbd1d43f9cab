/// Conversion of input rows.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/host/packed_layout.hpp"
#include "made_tensor.hpp"

namespace tandem::gpu::host {
namespace {

const activation_block& block_of(const activations& x, std::size_t row, std::size_t block) {
  return reinterpret_cast<const activation_block*>(x.data().bytes.get() + row * x.data().stride)[block];
}

class activations_on : public testing::TestWithParam<isa> {};

TEST_P(activations_on, are_quantised_to_the_same_bits_as_by_the_portable_kernels) {
  std::vector<float> inputs = made_inputs(5, 96, 3);
  inputs[40] = 0.0F;
  inputs[64] = std::numeric_limits<float>::infinity();
  activations here(activation_kind::int8, 5, 96);
  activations there(activation_kind::int8, 5, 96);
  here.convert(GetParam(), inputs.data(), 0, 5);
  there.convert(isa::portable, inputs.data(), 0, 5);
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t block = 0; block < 3; ++block) {
      EXPECT_EQ(std::memcmp(&block_of(here, row, block), &block_of(there, row, block), sizeof(activation_block)), 0);
    }
  }
}

TEST_P(activations_on, scale_the_largest_value_to_127_and_round_half_to_even) {
  std::vector<float> inputs(32, 0.0F);
  inputs[0] = -127.0F;
  inputs[1] = 0.5F;
  inputs[2] = 1.5F;
  inputs[17] = -2.5F;
  activations x(activation_kind::int8, 1, 32);
  x.convert(GetParam(), inputs.data(), 0, 1);
  const activation_block& block = block_of(x, 0, 0);
  EXPECT_EQ(block.scale, 1.0F);
  EXPECT_EQ(block.quants[0], -127);
  EXPECT_EQ(block.quants[1], 0);
  EXPECT_EQ(block.quants[2], 2);
  EXPECT_EQ(block.quants[17], -2);
  EXPECT_EQ(block.negative_low, 125);
  EXPECT_EQ(block.negative_sum, 127);
  EXPECT_EQ(block.scaled_sum, -127.0F);
}

TEST_P(activations_on, mark_a_block_with_nan_or_infinity_and_leave_the_others) {
  std::vector<float> inputs(96, 1.0F);
  inputs[33] = std::numeric_limits<float>::quiet_NaN();
  inputs[70] = -std::numeric_limits<float>::infinity();
  activations x(activation_kind::int8, 1, 96);
  x.convert(GetParam(), inputs.data(), 0, 1);
  EXPECT_EQ(block_of(x, 0, 0).scale, 1.0F / 127.0F);
  EXPECT_TRUE(std::isnan(block_of(x, 0, 1).scale));
  EXPECT_TRUE(std::isnan(block_of(x, 0, 2).scale));
}

TEST_P(activations_on, stay_finite_at_both_ends_of_the_range) {
  for (const float value :
       {std::numeric_limits<float>::max(), 1.1e-35F, 1e-38F, std::numeric_limits<float>::denorm_min()}) {
    const std::vector<float> inputs(32, value);
    activations x(activation_kind::int8, 1, 32);
    x.convert(GetParam(), inputs.data(), 0, 1);
    const activation_block& block = block_of(x, 0, 0);
    EXPECT_TRUE(std::isfinite(block.scale)) << value;
    EXPECT_TRUE(value < 1e-35F ? block.quants[5] == 0 : block.quants[5] == 127) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(each, activations_on, testing::ValuesIn(offered_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace tandem::gpu::host

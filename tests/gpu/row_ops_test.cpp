#include "gpu/host/row_ops.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "gpu/host/bf16.hpp"
#include "tests/gpu/host_isas.hpp"

namespace tandem::gpu::host {
namespace {

std::vector<float> random_values(std::size_t count, std::uint32_t seed, float scale = 1.0F) {
  std::mt19937 source(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(source);
  return values;
}

class row_ops_of : public testing::TestWithParam<isa> {};

TEST_P(row_ops_of, add_delta_and_bias_and_divide_by_the_root_mean_square) {
  const row_ops& ops = row_ops_for(GetParam());
  for (const std::int32_t count : {1, 15, 16, 64, 100, 576}) {
    const auto size = static_cast<std::size_t>(count);
    auto hidden = random_values(size, 1);
    const auto before = hidden;
    const auto delta = random_values(size, 2);
    const auto bias = random_values(size, 3);
    const auto weight = random_values(size, 4);
    std::vector<float> out(size);
    ops.add_and_normalize(hidden.data(), delta.data(), bias.data(), weight.data(), 1e-5F, count, out.data());
    double squares = 0;
    for (std::size_t i = 0; i < size; ++i)
      squares += std::pow(double{before[i]} + double{delta[i]} + double{bias[i]}, 2);
    const double scale = 1.0 / std::sqrt(squares / count + 1e-5);
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_NEAR(hidden[i], before[i] + delta[i] + bias[i], 1e-6);
      EXPECT_NEAR(out[i], hidden[i] * scale * double{weight[i]}, 1e-5);
    }
  }
}

TEST_P(row_ops_of, gate_is_silu_times_up_over_the_whole_range_of_floats) {
  const row_ops& ops = row_ops_for(GetParam());
  auto values = random_values(2 * 100, 5, 8.0F);
  const float extremes[] = {0.0F, -0.0F, 100.0F, -100.0F, 1e30F, -1e30F, 88.0F, -88.0F, 1e-30F};
  std::copy(std::begin(extremes), std::end(extremes), values.begin());
  std::vector<float> out(100);
  ops.gate(values.data(), 100, out.data());
  for (std::size_t i = 0; i < 100; ++i) {
    const double gate = values[i];
    const double expected = gate / (1.0 + std::exp(-gate)) * values[100 + i];
    EXPECT_NEAR(out[i], expected, 1e-6 * std::abs(expected) + 1e-6) << gate;
  }
}

TEST_P(row_ops_of, gate_keeps_a_nan_where_it_is) {
  auto values = random_values(64, 6);
  values[3] = std::nanf("");
  std::vector<float> out(32);
  row_ops_for(GetParam()).gate(values.data(), 32, out.data());
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(std::isnan(out[i]), i == 3);
}

/// Sums of a panel, [32][stride], of which `rows` are used, and the same row by row.
void expect_same_gates(const row_ops& ops, std::int32_t stride, std::int32_t rows) {
  constexpr std::int32_t kOutputs = 32;
  auto gate = random_values(static_cast<std::size_t>(kOutputs * stride), 8, 20.0F);
  const auto up = random_values(gate.size(), 9);
  const float extremes[] = {std::nanf(""), INFINITY, -INFINITY, 1e30F, -1e-30F};
  std::copy(std::begin(extremes), std::end(extremes), gate.begin());
  constexpr std::uint32_t kUntouched = 0x12345678;
  std::vector<std::uint32_t> pairs(static_cast<std::size_t>(16 * rows + 1), kUntouched);
  ops.gate_sums(gate.data(), up.data(), stride, rows, pairs.data());
  EXPECT_EQ(pairs.back(), kUntouched);
  for (std::int32_t r = 0; r < rows; ++r) {
    std::vector<float> gate_up;
    for (const std::vector<float>* sums : {&std::as_const(gate), &up})
      for (std::int32_t n = 0; n < kOutputs; ++n) gate_up.push_back((*sums)[static_cast<std::size_t>(n * stride + r)]);
    std::vector<float> gated(kOutputs);
    ops.gate(gate_up.data(), kOutputs, gated.data());
    for (std::int32_t n = 0; n < kOutputs; ++n) {
      const std::uint32_t pair = pairs[static_cast<std::size_t>(n % 16 * rows + r)];
      ASSERT_EQ(n < 16 ? pair & 0xFFFF : pair >> 16, float_to_bf16(gated[static_cast<std::size_t>(n)]))
          << "row " << r << " of " << rows << ", output " << n;
    }
  }
}

TEST_P(row_ops_of, gate_sums_has_the_bits_of_gate_rounded_to_bf16) {
  const row_ops& ops = row_ops_for(GetParam());
  expect_same_gates(ops, 1, 1);
  for (const std::int32_t rows : {2, 7, 15, 16}) expect_same_gates(ops, 16, rows);
}

TEST_P(row_ops_of, rotate_turns_pairs_by_their_angle_in_both_arrangements) {
  for (const bool interleaved : {false, true}) {
    constexpr std::int32_t kPairs = 16;
    auto head = random_values(2 * kPairs + 4, 7);  // four channels do not rotate
    const auto before = head;
    std::vector<float> cosines(kPairs);
    std::vector<float> sines(kPairs);
    for (int i = 0; i < kPairs; ++i) {
      cosines[i] = std::cos(0.3F * static_cast<float>(i));
      sines[i] = std::sin(0.3F * static_cast<float>(i));
    }
    row_ops_for(GetParam()).rotate(head.data(), cosines.data(), sines.data(), kPairs, interleaved);
    for (int i = 0; i < kPairs; ++i) {
      const int a = interleaved ? 2 * i : i;
      const int b = interleaved ? 2 * i + 1 : i + kPairs;
      EXPECT_NEAR(head[a], before[a] * cosines[i] - before[b] * sines[i], 1e-6);
      EXPECT_NEAR(head[b], before[a] * sines[i] + before[b] * cosines[i], 1e-6);
    }
    for (int i = 2 * kPairs; i < 2 * kPairs + 4; ++i) EXPECT_EQ(head[i], before[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(each_isa, row_ops_of, testing::ValuesIn(runnable_isas()),
                         [](const auto& each) { return std::string(isa_name(each.param)); });

}  // namespace
}  // namespace tandem::gpu::host

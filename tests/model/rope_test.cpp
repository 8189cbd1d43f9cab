/// E4: the settings of a file reach the angles, at positions around and far beyond the original context.

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <numbers>

#include "model/model.hpp"

namespace tandem::model {
namespace {

using kind = rope_description::scaling_kind;
constexpr int kOriginal = 64;
constexpr double kTheta = 10000.0;
constexpr int kDimensions = 64;

rope_description plain() {
  rope_description rope;
  rope.theta = kTheta;
  rope.dimensions = kDimensions;
  rope.original_context = kOriginal;
  return rope;
}

double inverse_power(int pair) {
  return 1.0 / std::pow(kTheta, 2.0 * pair / kDimensions);
}

// Angles, not frequencies: an error grows with the position.
template <class Expected>
void expect_angles(const rope_description& rope, const Expected& frequency_of) {
  const rope_table table = rope_frequencies(rope);
  ASSERT_EQ(table.frequencies.size(), static_cast<std::size_t>(kDimensions / 2));
  for (const int position : {0, kOriginal - 1, kOriginal, 2 * kOriginal, 4 * kOriginal, 1'000'000}) {
    for (int pair = 0; pair < kDimensions / 2; ++pair) {
      EXPECT_NEAR(position * table.frequencies[static_cast<std::size_t>(pair)], position * frequency_of(pair),
                  1e-9 * (position + 1))
          << "pair " << pair << " position " << position;
    }
  }
}

TEST(rope, E4_without_scaling_the_frequencies_are_powers_of_theta) {
  expect_angles(plain(), inverse_power);
  EXPECT_EQ(rope_frequencies(plain()).magnitude, 1.0);
}

TEST(rope, E4_linear_scaling_divides_every_frequency) {
  rope_description rope = plain();
  rope.scaling = kind::linear;
  rope.factor = 4.0;
  expect_angles(rope, [](int pair) { return inverse_power(pair) / 4.0; });
}

TEST(rope, E4_llama3_scaling_keeps_short_waves_divides_long_ones_and_mixes_between) {
  rope_description rope = plain();
  rope.scaling = kind::llama3;
  rope.factor = 8.0;
  rope.low_frequency_factor = 1.0;
  rope.high_frequency_factor = 4.0;
  int kept = 0;
  int divided = 0;
  int mixed = 0;
  expect_angles(rope, [&](int pair) {
    const double frequency = inverse_power(pair);
    const double turns = kOriginal * frequency / (2.0 * std::numbers::pi);  // over the original context
    if (turns > 4.0) return ++kept, frequency;
    if (turns < 1.0) return ++divided, frequency / 8.0;
    const double share = (turns - 1.0) / 3.0;
    return ++mixed, frequency * share + frequency / 8.0 * (1.0 - share);
  });
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(mixed, 0);
}

TEST(rope, E4_yarn_mixes_by_turns_and_stretches_the_magnitude) {
  rope_description rope = plain();
  rope.scaling = kind::yarn;
  rope.factor = 4.0;
  const auto pair_of = [](double turns) {
    return kDimensions * std::log(kOriginal / (turns * 2.0 * std::numbers::pi)) / (2.0 * std::log(kTheta));
  };
  const double low = std::max(0.0, std::floor(pair_of(32.0)));
  const double high = std::ceil(pair_of(1.0));
  ASSERT_LT(low, high);
  expect_angles(rope, [&](int pair) {
    const double slow = std::min(1.0, std::max(0.0, (pair - low) / (high - low)));
    return inverse_power(pair) * (1.0 - slow) + inverse_power(pair) / 4.0 * slow;
  });
  EXPECT_NEAR(rope_frequencies(rope).magnitude, 0.1 * std::log(4.0) + 1.0, 1e-12);
  rope.attention_factor = 1.25;
  EXPECT_EQ(rope_frequencies(rope).magnitude, 1.25);
}

TEST(rope, E4_divisors_of_the_file_divide_their_own_pair) {
  rope_description rope = plain();
  for (int pair = 0; pair < kDimensions / 2; ++pair) rope.frequency_divisors.push_back(1.0F + static_cast<float>(pair));
  expect_angles(rope, [](int pair) { return inverse_power(pair) / (1.0 + pair); });
}

TEST(rope, only_the_rotating_dimensions_have_frequencies) {
  rope_description rope = plain();
  rope.dimensions = 16;
  EXPECT_EQ(rope_frequencies(rope).frequencies.size(), 8U);
  EXPECT_NEAR(rope_frequencies(rope).frequencies[1], std::pow(kTheta, -2.0 / 16.0), 1e-15);
}

}  // namespace
}  // namespace tandem::model

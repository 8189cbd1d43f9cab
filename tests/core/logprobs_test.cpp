#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/sampling/distribution.hpp"

namespace tandem {
namespace {

TEST(raw_logprobs, A5_equal_a_log_softmax_in_double) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 5.0F);
  for (const std::size_t size : {1u, 7u, 300u, 5000u}) {
    std::vector<float> row(size);
    for (float& logit : row) logit = normal(random);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit));
    std::vector<token_id> order(size);
    for (std::size_t i = 0; i < size; ++i) order[i] = static_cast<token_id>(i);
    const auto at = [&](token_id id) { return static_cast<double>(row[static_cast<std::size_t>(id)]); };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a) > at(b); });
    for (std::size_t place = 0; place < size; place += 1 + size / 20) {
      const token_logprobs out = raw_logprobs(row, order[place], 5);
      EXPECT_EQ(out.token, order[place]);
      EXPECT_EQ(out.rank, static_cast<std::int32_t>(place) + 1);
      EXPECT_NEAR(out.logprob, at(order[place]) - std::log(sum), 1e-5);
      ASSERT_EQ(out.top.size(), std::min<std::size_t>(5, size));
      double mass = 0;
      for (std::size_t i = 0; i < out.top.size(); ++i) {
        EXPECT_EQ(out.top[i].first, order[i]);
        EXPECT_NEAR(out.top[i].second, at(order[i]) - std::log(sum), 1e-5);
        mass += std::exp(static_cast<double>(out.top[i].second));
      }
      EXPECT_LE(mass, 1.0 + 1e-5);
    }
  }
}

TEST(raw_logprobs, break_ties_by_id_in_rank_and_alternatives) {
  const std::vector<float> row{1, 2, 2, 2, 0};
  const token_logprobs out = raw_logprobs(row, 2, 2);
  EXPECT_EQ(out.rank, 2);
  ASSERT_EQ(out.top.size(), 2u);
  EXPECT_EQ(out.top[0].first, 1);
  EXPECT_EQ(out.top[1].first, 2);
  EXPECT_EQ(out.top[1].second, out.logprob);
}

TEST(raw_logprobs, without_alternatives_tell_of_the_chosen_token_only) {
  EXPECT_TRUE(raw_logprobs(std::vector<float>{1, 2}, 0, 0).top.empty());
  EXPECT_TRUE(raw_logprobs(std::vector<float>{1, 2}, 0, -1).top.empty());
}

TEST(raw_logprobs, never_show_nan) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& row :
       {std::vector<float>{kNan, kNan}, {kInfinity, kNan}, {-kInfinity, 1.0F}, {kInfinity, kInfinity}}) {
    for (const token_id token : {0, 1}) {
      const token_logprobs out = raw_logprobs(row, token, 2);
      EXPECT_FALSE(std::isnan(out.logprob));
      EXPECT_LE(out.logprob, 0.0F);
      for (const auto& [id, logprob] : out.top) EXPECT_FALSE(std::isnan(logprob)) << id;
    }
  }
}

}  // namespace
}  // namespace tandem

#include "core/sampling/distribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/sampling/noise.hpp"
#include "core/sampling/row_kernels.hpp"
#include "tests/core/naive_sampling.hpp"

namespace tandem {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::mt19937& random, std::size_t size, float spread) {
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> row(size);
  for (float& logit : row) logit = normal(random);
  return row;
}

std::vector<sampling_params> parameter_sets() {
  std::vector<sampling_params> sets;
  for (const float temperature : {0.3F, 1.0F, 2.5F}) {
    for (const std::int32_t top_k : {0, 1, 4, 40, 5000}) {
      for (const float top_p : {1.0F, 0.8F, 0.999F, 1e-6F}) {
        for (const float min_p : {0.0F, 0.05F, 1.0F}) {
          sampling_params params;
          params.temperature = temperature;
          params.top_k = top_k;
          params.top_p = top_p;
          params.min_p = min_p;
          sets.push_back(params);
        }
      }
    }
  }
  return sets;
}

std::vector<double> dense(const std::vector<candidate>& candidates, std::size_t size) {
  std::vector<double> p(size);
  for (const candidate& c : candidates) p[static_cast<std::size_t>(c.id)] = static_cast<double>(c.probability);
  return p;
}

TEST(filtered_distribution, equals_sorting_everything_in_double) {
  std::mt19937 random(1);
  for (const std::size_t size : {1u, 5u, 16u, 64u, 257u, 3000u}) {
    const std::vector<float> row = random_row(random, size, 3.0F);
    for (const sampling_params& params : parameter_sets()) {
      const auto expected = testing::naive_distribution({row.begin(), row.end()}, params);
      const auto actual = dense(filtered_distribution(row, params), size);
      for (std::size_t id = 0; id < size; ++id) ASSERT_NEAR(actual[id], expected[id], 3e-6) << id << " of " << size;
    }
  }
}

TEST(filtered_distribution, is_sorted_with_ties_by_id_and_sums_to_1) {
  std::mt19937 random(2);
  std::vector<float> row = random_row(random, 1000, 2.0F);
  for (float& logit : row) logit = std::round(logit * 4.0F) / 4.0F;  // many ties
  for (const sampling_params& params : parameter_sets()) {
    const auto candidates = filtered_distribution(row, params);
    double sum = 0;
    for (const candidate& c : candidates) sum += static_cast<double>(c.probability);
    EXPECT_NEAR(sum, 1.0, 1e-5);
    const bool filtered = params.top_p < 1.0F || params.min_p > 0.0F || params.top_k == 4 || params.top_k == 40;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      const auto& [before, now] = std::pair(candidates[i - 1], candidates[i]);
      const bool tie_or_plain = !filtered || now.logit == before.logit;
      EXPECT_TRUE(tie_or_plain ? before.id < now.id : before.logit > now.logit);
    }
  }
}

TEST(filtered_distribution, top_k_cuts_ties_by_ascending_id) {
  sampling_params params;
  params.top_k = 3;
  const std::vector<float> row{1, 2, 2, 2, 2, 0};
  const auto candidates = filtered_distribution(row, params);
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].id, 1);
  EXPECT_EQ(candidates[1].id, 2);
  EXPECT_EQ(candidates[2].id, 3);
  EXPECT_NEAR(candidates[0].probability, 1.0 / 3, 1e-6);
}

TEST(filtered_distribution, min_p_of_1_keeps_only_the_largest) {
  sampling_params params;
  params.min_p = 1.0F;
  const std::vector<float> row{1, 5, 4.999F, 5};
  EXPECT_EQ(filtered_distribution(row, params).size(), 2u);
}

TEST(coupled_draw, equals_the_argmax_of_log_p_plus_gumbel_on_every_path) {
  std::mt19937 random(3);
  for (const std::size_t size : {3u, 64u, 100u, 2049u}) {
    const std::vector<float> row = random_row(random, size, 2.0F);
    for (const sampling_params& params : parameter_sets()) {
      const auto candidates = filtered_distribution(row, params);
      for (std::int64_t position = 0; position < 8; ++position) {
        double best = -std::numeric_limits<double>::infinity();
        token_id winner = kNoToken;
        for (const candidate& c : candidates) {
          const double score = std::log(static_cast<double>(c.probability)) + gumbel(17, position, c.id);
          if (score > best) {
            best = score;
            winner = c.id;
          }
        }
        ASSERT_EQ(draw_coupled(row, params, 17, position), winner) << "size " << size << " position " << position;
      }
    }
  }
}

TEST(coupled_draw, is_the_same_function_with_and_without_a_filter_that_removes_nothing) {
  std::mt19937 random(4);
  const std::vector<float> row = random_row(random, 5000, 2.0F);
  sampling_params plain;
  sampling_params by_top_k = plain;
  by_top_k.top_k = 4999;
  sampling_params by_top_p = plain;
  by_top_p.top_p = 0.99999994F;
  sampling_params by_min_p = plain;
  by_min_p.min_p = 1e-30F;
  for (std::int64_t position = 0; position < 200; ++position) {
    const token_id expected = draw_coupled(row, plain, 5, position);
    ASSERT_EQ(draw_coupled(row, by_top_k, 5, position), expected);
    ASSERT_EQ(draw_coupled(row, by_top_p, 5, position), expected);
    ASSERT_EQ(draw_coupled(row, by_min_p, 5, position), expected);
  }
}

TEST(coupled_draw, follows_the_distribution) {
  const std::vector<float> row{0.5F, 1.5F, -1.0F, 0.0F, 2.0F};
  constexpr std::int64_t kDraws = 200'000;
  std::vector<std::int64_t> seen(row.size());
  for (std::int64_t position = 0; position < kDraws; ++position) {
    ++seen[static_cast<std::size_t>(draw_coupled(row, {}, 23, position))];
  }
  std::vector<double> expected = testing::naive_distribution({row.begin(), row.end()}, {});
  for (double& cell : expected) cell *= kDraws;
  EXPECT_GT(testing::chi_square_p(expected, seen), 1e-4);
}

class every_instruction_set : public ::testing::Test {
 protected:
  void TearDown() override { row::force_isa_for_test(original_); }
  row::isa original_ = row::current_isa();
};

TEST_F(every_instruction_set, gives_the_same_bits) {
  std::mt19937 random(6);
  for (std::size_t size = 1; size < 400; size += 13) {
    std::vector<float> row = random_row(random, size, 4.0F);
    row[size / 2] = kNan;
    row[size / 3] = -kInfinity;
    const auto observe = [&](row::isa isa) {
      row::force_isa_for_test(isa);
      const float maximum = row::largest(row);
      std::vector<double> out{static_cast<double>(maximum), row::sum_exp(row, maximum, 0.7F)};
      for (std::int64_t position = 0; position < 20; ++position) out.push_back(draw_coupled(row, {}, 3, position));
      std::vector<token_id> ids;
      row::collect_at_least(row, maximum, 1.0F, -2.0F, ids);
      out.insert(out.end(), ids.begin(), ids.end());
      return out;
    };
    const auto expected = observe(row::isa::portable);
    for (const row::isa isa : {row::isa::avx2, row::isa::avx512}) {
      if (row::isa_supported(isa)) {
        ASSERT_EQ(observe(isa), expected) << size;
      }
    }
  }
}

TEST(exponential, is_within_1e_6_of_the_true_one) {
  for (float x = -86.9F; x <= 0.0F; x += 0.0137F) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(row::exp_nonpositive(x)) / exact, 1.0, 1e-6) << x;
  }
  EXPECT_EQ(row::exp_nonpositive(0.0F), 1.0F);
  EXPECT_EQ(row::exp_nonpositive(-kInfinity), 0.0F);
}

// --- adversarial rows ---

std::vector<std::vector<float>> adversarial_rows() {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return {{kNan, kNan, kNan},
          {-kInfinity, -kInfinity},
          {kInfinity, kInfinity, 0.0F},
          {kNan, 1.0F, -kInfinity, kInfinity},
          {kLargest, -kLargest, 0.0F},
          {0.0F, -0.0F, 0.0F},
          std::vector<float>(200, 3.0F),
          std::vector<float>(200, kNan),
          {-kInfinity, -kInfinity, -1000.0F},
          {1e-45F, 0.0F, -1e-45F}};
}

TEST(adversarial_rows, always_give_a_token_of_the_filtered_distribution) {
  std::vector<sampling_params> sets = parameter_sets();
  for (const float temperature : {0.0F, 1e-45F, 1e-6F, 1e30F}) {
    sets.emplace_back().temperature = temperature;
    sampling_params filtered;
    filtered.temperature = temperature;
    filtered.top_k = 2;
    filtered.top_p = 0.5F;
    sets.push_back(filtered);
  }
  for (const auto& row : adversarial_rows()) {
    for (const sampling_params& params : sets) {
      const auto candidates = filtered_distribution(row, params);
      ASSERT_FALSE(candidates.empty());
      double sum = 0;
      for (const candidate& c : candidates) sum += static_cast<double>(c.probability);
      ASSERT_NEAR(sum, 1.0, 1e-5);
      const token_id drawn = draw_coupled(row, params, 8, 2);
      ASSERT_TRUE(std::any_of(candidates.begin(), candidates.end(), [&](const auto& c) { return c.id == drawn; }));
    }
  }
}

TEST(greedy_token, takes_the_smallest_of_equal_ids_and_never_nan) {
  EXPECT_EQ(greedy_token(std::vector<float>{kNan, 1, 3, 3, -kInfinity}), 2);
  EXPECT_EQ(greedy_token(std::vector<float>{kNan, kInfinity, kInfinity}), 1);
  EXPECT_EQ(greedy_token(std::vector<float>(100, 0.0F)), 0);
  EXPECT_EQ(greedy_token(std::vector<float>{kNan, kNan}), 0);
  std::vector<float> row(1000, -1.0F);
  row[777] = row[778] = 0.5F;
  EXPECT_EQ(greedy_token(row), 777);
}

}  // namespace
}  // namespace tandem

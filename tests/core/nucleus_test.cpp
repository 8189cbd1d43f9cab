// Top-p without sorting what it cuts, and the probability of one token without listing all: the bits of the plain way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/sampling/distribution.hpp"
#include "core/sampling/row_kernels.hpp"
#include "core/sampling/selection.hpp"

namespace tandem {
namespace {

/// ORACLE: weigh everything, sort everything, cut where the mass is reached.
std::vector<candidate> plain_nucleus(const std::vector<float>& row, const sampling_params& params) {
  const float maximum = row::largest(row);
  const auto scale = static_cast<float>(1.0 / static_cast<double>(params.temperature));
  const auto weight_of = [&](float logit) { return row::exp_nonpositive((logit - maximum) * scale); };
  std::vector<row::scored_id> all;
  for (std::size_t id = 0; id < row.size(); ++id)
    if (weight_of(row::cleaned(row[id])) > 0.0F) all.push_back({row::cleaned(row[id]), static_cast<token_id>(id)});
  std::sort(all.begin(), all.end(), row::comes_before);
  const double mass = static_cast<double>(params.top_p) * row::sum_exp(row, maximum, scale);
  double sum = 0;
  std::size_t kept = 0;
  while (kept < all.size() && sum < mass) sum += static_cast<double>(weight_of(all[kept++].logit));
  std::vector<candidate> nucleus;
  for (std::size_t i = 0; i < kept; ++i)
    nucleus.push_back(
        {all[i].id, all[i].logit * scale, static_cast<float>(static_cast<double>(weight_of(all[i].logit)) / sum)});
  return nucleus;
}

void expect_plain(const std::vector<float>& row) {
  for (const float temperature : {0.5F, 1.0F, 1.7F})
    for (const float top_p : {1e-6F, 0.3F, 0.9F, 0.95F, 0.999F, 0.9999999F}) {
      sampling_params params;
      params.temperature = temperature;
      params.top_p = top_p;
      const auto expected = plain_nucleus(row, params);
      const auto found = filtered_distribution(row, params);
      ASSERT_EQ(found.size(), expected.size()) << top_p << " of " << row.size();
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].id, expected[i].id) << top_p << " of " << row.size();
        ASSERT_EQ(found[i].logit, expected[i].logit);
        ASSERT_EQ(found[i].probability, expected[i].probability);
      }
    }
}

std::vector<float> random_row(std::size_t size, float spread, bool coarse) {
  std::mt19937 random(static_cast<std::uint32_t>(size));
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> row(size);
  for (float& each : row) each = coarse ? std::round(normal(random)) : normal(random);
  return row;
}

TEST(nucleus, is_that_of_sorting_everything) {
  for (const std::size_t size : {1U, 2U, 63U, 65U, 129U, 1000U, 20'000U})
    for (const float spread : {0.0F, 0.1F, 1.0F, 3.0F, 10.0F, 60.0F})
      for (const bool coarse : {false, true}) expect_plain(random_row(size, spread, coarse));  // coarse: many ties
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::vector<float>> bad_rows() {
  std::vector<float> mixed = random_row(500, 2.0F, false);
  for (std::size_t i = 0; i < mixed.size(); i += 3) mixed[i] = i % 2 == 0 ? kNan : -kInfinity;
  std::vector<float> high = random_row(300, 2.0F, false);
  high[7] = high[200] = kInfinity;
  return {mixed, high, {1e-45F, 0.0F, -1e-45F}, {3e38F, -3e38F, 0.0F}, std::vector<float>(200, 3.0F)};
}

TEST(nucleus, of_rows_with_bad_numbers_is_that_of_sorting_everything) {
  for (const auto& row : bad_rows()) expect_plain(row);
}

void expect_listed_probabilities(const std::vector<float>& row, const sampling_params& params) {
  std::vector<float> listed(row.size(), 0.0F);
  for (const candidate& each : filtered_distribution(row, params))
    listed[static_cast<std::size_t>(each.id)] = each.probability;
  const std::size_t step = 1 + row.size() / 300;
  for (std::size_t id = 0; id < row.size(); id += step)
    ASSERT_EQ(unfiltered_probability(row, params, static_cast<token_id>(id)), listed[id]) << id << " of " << row.size();
  EXPECT_EQ(unfiltered_probability(row, params, -1), 0.0F);
  EXPECT_EQ(unfiltered_probability(row, params, static_cast<token_id>(row.size())), 0.0F);
}

TEST(unfiltered_probability, is_the_one_in_the_list) {
  auto rows = bad_rows();
  for (const std::size_t size : {1U, 17U, 1000U}) rows.push_back(random_row(size, 3.0F, false));
  rows.push_back(std::vector<float>(20, kNan));
  for (const auto& row : rows)
    for (const float temperature : {0.0F, 1e-6F, 0.7F, 1e30F}) {
      sampling_params params;
      params.temperature = temperature;
      expect_listed_probabilities(row, params);
    }
}

}  // namespace
}  // namespace tandem

#include "app/latency_statistics.hpp"

#include <gtest/gtest.h>

namespace tandem::app {

TEST(latency_statistics, percentiles_are_samples_by_nearest_rank) {
  std::vector<double> samples;
  for (int value = 100; value >= 1; --value) samples.push_back(value);
  EXPECT_EQ(percentile(samples, 0.5), 50);
  EXPECT_EQ(percentile(samples, 0.9), 90);
  EXPECT_EQ(percentile(samples, 0.99), 99);
  EXPECT_EQ(percentile({7}, 0.5), 7);
}

TEST(latency_statistics, no_samples_are_zeros_and_not_a_crash) {
  EXPECT_EQ(summarize({}).dump(), R"({"mean":0.0,"p50":0.0,"p90":0.0,"p99":0.0})");
}

}  // namespace tandem::app

#include "app/histogram_text.hpp"

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

constexpr const char* kText = R"(# TYPE t:wait_seconds histogram
t:wait_seconds_count{kind="a"} 4
t:wait_seconds_sum{kind="a"} 0.1
t:wait_seconds_bucket{kind="a",le="0.01"} 2
t:wait_seconds_bucket{kind="a",le="0.02"} 4
t:wait_seconds_bucket{kind="a",le="+Inf"} 4
t:wait_seconds_count{kind="b"} 4
t:wait_seconds_sum{kind="b"} 0.3
t:wait_seconds_bucket{kind="b",le="0.01"} 0
t:wait_seconds_bucket{kind="b",le="0.02"} 2
t:wait_seconds_bucket{kind="b",le="+Inf"} 4
t:wait_seconds_more_count 9
)";

}  // namespace

TEST(histogram_text, label_sets_add_up_and_other_names_stay_out) {
  const histogram_counts read = read_histogram(kText, "t:wait_seconds");
  EXPECT_EQ(read.count, 8);
  EXPECT_DOUBLE_EQ(read.sum, 0.4);
  EXPECT_EQ(read.cumulative, (std::vector<double>{2, 6, 8}));
}

TEST(histogram_text, a_quantile_is_linear_within_its_bucket_and_ends_at_the_last_finite_bound) {
  const histogram_counts read = read_histogram(kText, "t:wait_seconds");
  EXPECT_DOUBLE_EQ(read.quantile(0.25), 0.01);
  EXPECT_DOUBLE_EQ(read.quantile(0.5), 0.015);
  EXPECT_DOUBLE_EQ(read.quantile(0.99), 0.02);
}

TEST(histogram_text, an_earlier_reading_is_taken_off) {
  const histogram_counts read = read_histogram(kText, "t:wait_seconds");
  EXPECT_EQ(read.since(read).count, 0);
  EXPECT_EQ(read.since(read).quantile(0.5), 0);
  EXPECT_EQ(read.since(read_histogram("", "t:wait_seconds")).count, 8);
}

TEST(histogram_text, the_summary_is_in_milliseconds) {
  EXPECT_EQ(summarize(read_histogram("", "t:wait_seconds")).dump(), R"({"mean":0.0,"p50":0.0,"p99":0.0})");
  EXPECT_DOUBLE_EQ(summarize(read_histogram(kText, "t:wait_seconds"))["mean"].get<double>(), 50);
}

}  // namespace tandem::app

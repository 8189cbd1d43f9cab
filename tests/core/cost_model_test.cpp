// What the cost model makes of made steps: shape, noise, outliers, context, prefill, drafts.
#include "core/speculation/cost_model.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/core/synthetic_server.hpp"

namespace tandem {
namespace {

void feed(row_time_curve& curve, const synthetic::row_seconds& truth, std::initializer_list<double> rows, int times) {
  for (int i = 0; i < times; ++i) {
    for (const double r : rows) curve.observe(r, truth(r));
  }
}

void expect_near(const row_time_curve& curve, const synthetic::row_seconds& truth, double rows, double share) {
  EXPECT_NEAR(curve.seconds(rows), truth(rows), share * truth(rows)) << rows << " rows";
}

TEST(row_time_curve, is_sensible_before_anything_was_seen) {
  const row_time_curve curve(0.01, 0.1);
  EXPECT_EQ(curve.seconds(0), 0);
  EXPECT_DOUBLE_EQ(curve.seconds(1), 0.01);
  EXPECT_GT(curve.seconds(8), curve.seconds(4));
  EXPECT_LT(curve.seconds(8), 8 * curve.seconds(1));
}

TEST(row_time_curve, follows_a_memory_bound_device_through_its_bend) {
  row_time_curve curve(0.01, 0.1);
  const auto truth = synthetic::flat_then_linear(0.02, 16);
  feed(curve, truth, {1, 2, 4, 8, 16, 20, 24, 32, 64}, 10);
  for (const double rows : {1.0, 3.0, 6.0, 12.0, 16.0, 22.0, 40.0, 64.0}) expect_near(curve, truth, rows, 0.05);
}

TEST(row_time_curve, follows_a_compute_bound_device_and_goes_on_beyond_what_was_seen) {
  row_time_curve curve(0.01, 0.1);
  const auto truth = synthetic::linear(0.005, 0.7);
  feed(curve, truth, {1, 2, 3, 5, 9, 17}, 10);
  for (const double rows : {1.0, 4.0, 7.0, 13.0, 17.0}) expect_near(curve, truth, rows, 0.02);
  expect_near(curve, truth, 34, 0.2);
}

TEST(row_time_curve, is_monotone_whatever_was_measured) {
  row_time_curve curve(0.01, 0.1);
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    curve.observe(static_cast<double>(1 + random() % 100), 0.01 + static_cast<double>(random() % 1000) * 1e-5);
    for (double rows = 1; rows < 120; rows += 0.5) ASSERT_LE(curve.seconds(rows), curve.seconds(rows + 0.5) + 1e-12);
  }
}

TEST(row_time_curve, hardly_minds_one_step_that_took_a_hundred_times_as_long) {
  row_time_curve curve(0.01, 0.1);
  const auto truth = synthetic::linear(0.02, 0.1);
  feed(curve, truth, {1, 4, 8}, 20);
  curve.observe(4, 100 * truth(4));
  for (const double rows : {1.0, 4.0, 8.0}) expect_near(curve, truth, rows, 0.1);
}

TEST(row_time_curve, unlearns_a_bad_first_impression) {
  row_time_curve curve(0.01, 0.1);
  const auto truth = synthetic::flat_then_linear(0.02, 16);
  feed(curve, truth, {1}, 20);
  curve.observe(5, 10 * truth(5));
  EXPECT_GT(curve.seconds(5), 1.5 * truth(5));
  feed(curve, truth, {1}, 6000);  // nobody goes there again
  EXPECT_LT(curve.seconds(5), 1.5 * truth(5));
}

TEST(row_time_curve, follows_a_machine_that_became_slower_also_where_it_was_not_measured_since) {
  row_time_curve curve(0.01, 0.1);
  feed(curve, synthetic::linear(0.02, 0.2), {1, 2, 4, 8}, 20);
  feed(curve, synthetic::linear(0.03, 0.2), {1, 2}, 100);
  expect_near(curve, synthetic::linear(0.03, 0.2), 2, 0.02);
  expect_near(curve, synthetic::linear(0.03, 0.2), 8, 0.25);
}

TEST(row_time_curve, ignores_what_is_no_measurement) {
  row_time_curve curve(0.01, 0.1);
  curve.observe(0, 1);
  curve.observe(3, 0);
  curve.observe(3, -1);
  curve.observe(3, std::numeric_limits<double>::quiet_NaN());
  curve.observe(3, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(curve.has_seen_anything());
}

TEST(row_time_curve, learns_what_a_position_of_context_costs) {
  row_time_curve curve(0.01, 0.1);
  constexpr double kPosition = 2e-6;
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    const auto context = static_cast<double>(random() % 4000);
    curve.observe(1, 0.02 + kPosition * context, context);
  }
  EXPECT_NEAR(curve.seconds_per_position(), kPosition, 0.2 * kPosition);
  EXPECT_NEAR(curve.seconds(1), 0.02 + kPosition * 2000, 0.003);
}

TEST(cost_model, keeps_prompt_rows_apart_from_rows_with_logits) {
  cost_model costs;
  for (int i = 0; i < 20; ++i) {
    costs.observe(step_seen{.decode_rows = 4, .seconds = 0.02});
    costs.observe(step_seen{.decode_rows = 4, .prefill_rows = 100, .seconds = 0.02 + 100 * 0.0005});
  }
  EXPECT_NEAR(costs.step_seconds(4), 0.02, 1e-4);
  EXPECT_NEAR(costs.prefill_row_seconds(), 0.0005, 1e-5);
}

TEST(cost_model, learns_what_drafts_cost_from_whole_work_items) {
  cost_model costs;
  costs.observe(step_seen{.decode_rows = 1, .seconds = 0.02});
  EXPECT_GT(costs.forward_seconds(draft_method::draft_model, 1), 0);
  EXPECT_LT(costs.forward_seconds(draft_method::draft_model, 1), costs.step_seconds(1));
  const auto truth = synthetic::linear(0.008, 0.1);
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    drafts_seen item;
    item.method = draft_method::draft_model;
    item.first_rows = static_cast<std::int32_t>(1 + random() % 3);
    item.sequences_at.assign(random() % 6, 1);
    item.seconds = truth(item.first_rows) + static_cast<double>(item.sequences_at.size()) * truth(1);
    costs.observe(item);
  }
  EXPECT_NEAR(costs.forward_seconds(draft_method::draft_model, 1), truth(1), 0.1 * truth(1));
}

TEST(cost_model, takes_the_wait_for_a_lone_ticket_as_the_price_of_asking) {
  cost_model costs;
  EXPECT_EQ(costs.asking_seconds(draft_method::ngram), 0);
  for (int i = 0; i < 50; ++i)
    costs.observe(
        step_seen{.decode_rows = 1, .seconds = 0.02, .ticket_wait_seconds = 1e-4, .only_source = draft_method::ngram});
  costs.observe(
      step_seen{.decode_rows = 1, .seconds = 0.02, .ticket_wait_seconds = 0.2, .only_source = draft_method::ngram});
  EXPECT_NEAR(costs.asking_seconds(draft_method::ngram), 1e-4, 5e-5);
}

}  // namespace
}  // namespace tandem

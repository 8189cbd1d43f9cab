#include "gpu/host/attention_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "gpu/host/attention.hpp"

namespace tandem::gpu::host {
namespace {

attention_plan::shape shape_of(std::int32_t threads) {
  return {3, 3, 64, threads, limits::kAttentionPartialFloats};
}

std::int64_t floats_of(const attention_plan& plan, std::size_t cut) {
  for (const attention_item& item : plan.items())
    if (item.cut == static_cast<std::int32_t>(cut))
      return std::int64_t{item.rows} * 3 * plan.cuts()[cut].partitions * partial_floats(64);
  return 0;
}

/// Every (row, head, partition it sees) once, partial results apart from each other and inside the arena.
void expect_complete(const attention_plan& plan, const std::vector<attention_rows>& sequences) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> covered;
  std::vector<std::int32_t> pieces(plan.cuts().size(), 0);
  for (const attention_item& item : plan.items()) {
    const attention_rows& of = sequences[static_cast<std::size_t>(item.sequence)];
    ASSERT_EQ(item.first_position - of.first_position, item.first_row - of.first_row);
    if (item.cut >= 0) ++pieces[static_cast<std::size_t>(item.cut)];
    for (std::int32_t row = 0; row < item.rows; ++row)
      for (std::int32_t p = item.first_partition; p < item.end_partition; ++p)
        if (p < partitions_seen(item.first_position + row)) ++covered[{item.first_row + row, item.kv_head, p}];
  }
  std::size_t expected = 0;
  for (const attention_rows& of : sequences)
    for (std::int32_t row = 0; row < of.rows; ++row)
      expected += 3 * static_cast<std::size_t>(partitions_seen(of.first_position + row));
  ASSERT_EQ(covered.size(), expected);
  for (const auto& [place, times] : covered) ASSERT_EQ(times, 1);
  ASSERT_LE(plan.cuts().size(), static_cast<std::size_t>(plan.max_cuts()));
  std::int64_t end = 0;
  for (std::size_t i = 0; i < plan.cuts().size(); ++i) {
    EXPECT_EQ(plan.cuts()[i].pieces, pieces[i]);
    EXPECT_GE(plan.cuts()[i].partials, end);
    end = plan.cuts()[i].partials + floats_of(plan, i);
  }
  EXPECT_LE(end, limits::kAttentionPartialFloats);
}

TEST(attention_plan, one_long_sequence_keeps_all_threads_busy) {
  for (const std::int32_t threads : {2, 4, 16}) {
    attention_plan plan(shape_of(threads));
    const std::vector<attention_rows> one{{0, 1, 8191}};
    plan.divide(one);
    EXPECT_GE(plan.items().size(), static_cast<std::size_t>(2 * threads));
    EXPECT_EQ(plan.cuts().size(), 3U);
    expect_complete(plan, one);
  }
}

TEST(attention_plan, cuts_nothing_with_one_thread_or_enough_sequences_or_one_partition) {
  attention_plan alone(shape_of(1));
  alone.divide(std::vector<attention_rows>{{0, 1, 8191}});
  EXPECT_TRUE(alone.cuts().empty());
  attention_plan plan(shape_of(2));
  std::vector<attention_rows> many;
  for (std::int32_t i = 0; i < 32; ++i) many.push_back({i, 1, 2000 + i});
  plan.divide(many);
  EXPECT_TRUE(plan.cuts().empty());
  EXPECT_EQ(plan.items().size(), 96U);
  plan.divide(std::vector<attention_rows>{{0, 1, 255}});
  EXPECT_TRUE(plan.cuts().empty());
  plan.divide({});
  EXPECT_TRUE(plan.items().empty());
}

TEST(attention_plan, cuts_the_one_long_sequence_of_a_batch) {
  attention_plan plan(shape_of(8));
  std::vector<attention_rows> batch;
  for (std::int32_t i = 0; i < 16; ++i) batch.push_back({i, 1, i == 5 ? 30000 : 100});
  plan.divide(batch);
  EXPECT_EQ(plan.cuts().size(), 3U);
  expect_complete(plan, batch);
}

TEST(attention_plan, what_the_arena_cannot_hold_stays_whole) {
  auto shape = shape_of(16);
  shape.arena_floats = 3 * 4 * partial_floats(64) + 1;  // one head's queries over four partitions
  attention_plan plan(shape);
  plan.divide(std::vector<attention_rows>{{0, 1, 1023}});
  EXPECT_EQ(plan.cuts().size(), 1U);
  plan.divide(std::vector<attention_rows>{{0, 1, 1024}});
  EXPECT_TRUE(plan.cuts().empty());
  EXPECT_EQ(plan.items().size(), 3U);
}

TEST(attention_plan, any_mix_of_rows_is_covered_once) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    attention_plan plan(shape_of(1 + static_cast<std::int32_t>(random() % 20)));
    std::vector<attention_rows> batch;
    std::int32_t row = 0;
    for (std::uint32_t i = 0; i < 1 + random() % 6; ++i) {
      const auto rows = static_cast<std::int32_t>(1 + random() % 40);
      batch.push_back({row, rows, static_cast<std::int32_t>(random() % 3000)});
      row += rows;
    }
    plan.divide(batch);
    expect_complete(plan, batch);
  }
}

}  // namespace
}  // namespace tandem::gpu::host

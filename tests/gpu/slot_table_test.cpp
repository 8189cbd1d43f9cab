#include "gpu/host/slot_table.hpp"

#include <gtest/gtest.h>

namespace tandem::gpu::host {
namespace {

slot_opening opening(slot_id slot, std::vector<token_id> known, std::int32_t prompt_length, float frequency) {
  slot_opening opened;
  opened.slot = slot;
  opened.slot_gen = 7;
  sampling_params params;
  params.frequency_penalty = frequency;
  opened.sampling = std::make_shared<const sampling_params>(params);
  opened.prompt_length = prompt_length;
  opened.known = std::make_shared<const std::vector<token_id>>(std::move(known));
  return opened;
}

TEST(slot_table, a_delta_replaces_the_table_from_its_index_on) {
  slot_table slots(4, 100);
  const auto opened = opening(2, {1}, 1, 0);
  const table_delta first{2, 0, {10, 11, 12}};
  slots.apply({}, {&opened, 1}, {&first, 1});
  const table_delta second{2, 1, {20}};
  slots.apply({}, {}, {&second, 1});
  EXPECT_EQ(slots.at(2).table, (std::vector<block_id>{10, 20}));
  EXPECT_EQ(slots.at(2).capacity(16), 32);
}

TEST(slot_table, a_new_life_forgets_the_old_one) {
  slot_table slots(1, 100);
  const auto opened = opening(0, {1}, 1, 0);
  const table_delta delta{0, 0, {10}};
  slots.apply({}, {&opened, 1}, {&delta, 1});
  const slot_id closed = 0;
  slots.apply({&closed, 1}, {&opened, 1}, {});
  EXPECT_TRUE(slots.at(0).table.empty());
}

TEST(slot_table, counts_prompt_and_output_apart_and_only_for_penalties_that_need_it) {
  slot_table slots(2, 100);
  const slot_opening opened[] = {opening(0, {5, 6, 6}, 2, 0.5F), opening(1, {5, 6, 6}, 2, 0)};
  slots.apply({}, opened, {});
  EXPECT_TRUE(slots.at(0).counts.all().at(5).in_prompt);
  EXPECT_EQ(slots.at(0).counts.all().at(5).in_output, 0);
  EXPECT_EQ(slots.at(0).counts.all().at(6).in_output, 1);
  EXPECT_TRUE(slots.at(1).counts.all().empty());
}

TEST(slot_table, known_tokens_are_counted_once_however_often_they_are_named) {
  slot_table slots(1, 100);
  const auto opened = opening(0, {5, 6}, 1, 0.5F);
  slots.apply({}, {&opened, 1}, {});
  slot_state& slot = slots.at(0);
  const std::vector<token_id> again{5, 6, 6};
  slot.count_known(0, again);
  slot.count_known(1, std::span(again).subspan(1));
  EXPECT_EQ(slot.counts.all().at(6).in_output, 2);
  EXPECT_EQ(slot.counted, 3);
}

}  // namespace
}  // namespace tandem::gpu::host

#include "gpu/host/head_backlog.hpp"

#include <gtest/gtest.h>

#include "config/limits.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kWidth = 3;

void add(head_backlog& backlog, token_id token) {
  float* raw = backlog.add(1, token);
  for (std::int32_t i = 0; i < kWidth; ++i) raw[i] = static_cast<float>(10 * token + i);
}

TEST(head_backlog, holds_no_more_than_can_be_taken_in_at_once) {
  head_backlog backlog(2, kWidth, 4);
  EXPECT_TRUE(backlog.has_room(1, 7, 20, 4));
  EXPECT_FALSE(backlog.has_room(1, 7, 20, 5));
}

TEST(head_backlog, keeps_rows_in_order_up_to_its_bound) {
  head_backlog backlog(2, kWidth);
  EXPECT_TRUE(backlog.of(1, 7).tokens.empty());
  for (std::int32_t i = 0; i < limits::kMaxPutOffRows; ++i) {
    ASSERT_TRUE(backlog.has_room(1, 7, 20 + i, 1));
    add(backlog, i);
  }
  EXPECT_FALSE(backlog.has_room(1, 7, 20 + limits::kMaxPutOffRows, 1));
  const auto rows = backlog.of(1, 7);
  EXPECT_EQ(rows.first_position, 20);
  ASSERT_EQ(rows.tokens.size(), static_cast<std::size_t>(limits::kMaxPutOffRows));
  for (std::int32_t i = 0; i < limits::kMaxPutOffRows; ++i) {
    EXPECT_EQ(rows.tokens[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(rows.raw[i * kWidth + 2], static_cast<float>(10 * i + 2));
  }
  EXPECT_TRUE(backlog.of(1, 8).tokens.empty()) << "another life's rows are none of its own";
  backlog.clear(1);
  EXPECT_TRUE(backlog.of(1, 7).tokens.empty());
}

TEST(head_backlog, forgets_what_does_not_go_on) {
  head_backlog backlog(2, kWidth);
  const auto start = [&] {
    backlog.clear(1);
    for (std::int32_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(backlog.has_room(1, 7, 20 + i, 1));
      add(backlog, i);
    }
  };
  start();
  EXPECT_TRUE(backlog.has_room(1, 7, 22, 1));  // rows 22 and 23 are computed once more
  EXPECT_EQ(backlog.of(1, 7).tokens.size(), 2u);
  start();
  EXPECT_TRUE(backlog.has_room(1, 7, 30, 1));  // a gap
  EXPECT_TRUE(backlog.of(1, 7).tokens.empty());
  start();
  EXPECT_TRUE(backlog.has_room(1, 8, 0, 1));  // another life
  EXPECT_TRUE(backlog.of(1, 8).tokens.empty());
  EXPECT_TRUE(backlog.of(1, 7).tokens.empty());
}

}  // namespace
}  // namespace tandem::gpu::host

#include "core/scheduling/block_holds.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tandem {
namespace {

TEST(BlockHolds, ABlockCountsOnceHoweverManyHoldIt) {
  block_holds holds(8);
  EXPECT_EQ(holds.add(std::array{1, 2, 3}), 3);
  EXPECT_EQ(holds.add(std::array{2, 3, 4}), 1);
  EXPECT_EQ(holds.distinct(), 4);
  EXPECT_EQ(holds.drop(std::array{1, 2, 3}), 1);  // the others are held still
  EXPECT_EQ(holds.distinct(), 3);
  EXPECT_EQ(holds.drop(std::array{2, 3, 4}), 3);
  EXPECT_EQ(holds, block_holds(8));
}

TEST(BlockHolds, WhatNobodyHoldsCannotBeDropped) {
  block_holds holds(2);
  EXPECT_DEATH(holds.drop(std::array{1}), "");
  EXPECT_DEATH(holds.add(std::array{2}), "");
}

}  // namespace
}  // namespace tandem

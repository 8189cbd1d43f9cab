/// Choosing an instruction set.

#include <gtest/gtest.h>

#include <cstdlib>

#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {
namespace {

TEST(isa, detected_is_one_that_may_be_chosen_by_name) {
  const auto chosen = choose_isa(isa_name(detect_isa()));
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(*chosen, detect_isa());
}

TEST(isa, portable_may_always_be_chosen) {
  EXPECT_EQ(choose_isa("portable").value(), isa::portable);
}

TEST(isa, empty_name_means_the_environment_and_then_the_best) {
  ::unsetenv("TANDEM_ISA");
  EXPECT_EQ(choose_isa("").value(), detect_isa());
  ::setenv("TANDEM_ISA", "portable", 1);
  EXPECT_EQ(choose_isa("").value(), isa::portable);
  EXPECT_EQ(choose_isa(isa_name(detect_isa())).value(), detect_isa());
  ::unsetenv("TANDEM_ISA");
}

TEST(isa, unknown_name_is_refused_with_the_known_ones) {
  const auto refused = choose_isa("sse9");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
  EXPECT_NE(refused.error().message.find("avx2"), std::string::npos);
}

}  // namespace
}  // namespace tandem::gpu::host

/// The check that decides at start whether AMX may be trusted, with emulated kernels and with planted faults.

#include "gpu/host/kernels/table_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "amx_lab.hpp"
#if defined(TANDEM_X86_KERNELS)
#include "gpu/host/kernels/amx_choice.hpp"
#endif
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
#include "tests/support/trapped_tiles.hpp"
#endif

namespace tandem::gpu::host {
namespace {

template <packed_format Format>
constexpr std::size_t kIndex = static_cast<std::size_t>(Format);

/// The emulated kernel, with one bit of one output changed when there are at least MinRows rows.
template <packed_format Format, std::int32_t MinRows>
void faulty(const matmul_task& task) {
  emulated_kernels().matmul[kIndex<Format>](task);
  if (task.rows < MinRows) return;
  float& last = task.out[(task.rows - 1) * task.out_stride + task.outputs - 1];
  last = std::nextafter(last, std::numeric_limits<float>::infinity());
}

/// Writes one output more than the tile has.
template <packed_format Format>
void overrunning(const matmul_task& task) {
  emulated_kernels().matmul[kIndex<Format>](task);
  if (task.outputs < kTileOutputs) task.out[task.outputs] = 0;
}

/// Forgets the second tile of inputs.
void truncated_bf16(const matmul_task& task) {
  matmul_task less = task;
  less.blocks = std::min<std::int64_t>(less.blocks, 16);
  emulated_kernels().matmul[kIndex<packed_format::bf16>](less);
}

template <packed_format Format>
void expect_found() {
  kernel_table table = emulated_kernels();
  table.matmul[kIndex<Format>] = &faulty<Format, 1>;
  auto found = first_difference(portable_kernels(), table);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->format, Format);
  EXPECT_EQ(found->rows, 1);
  table.matmul[kIndex<Format>] = &faulty<Format, 17>;
  found = first_difference(portable_kernels(), table);
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(found->rows, 16);
  table.matmul[kIndex<Format>] = &overrunning<Format>;
  EXPECT_TRUE(first_difference(portable_kernels(), table).has_value());
}

TEST(table_check, finds_no_difference_between_vector_and_amx_kernels) {
  EXPECT_FALSE(first_difference(portable_kernels(), emulated_kernels()).has_value());
  EXPECT_FALSE(first_difference(vector_kernels(), emulated_kernels()).has_value());
}

TEST(table_check, finds_one_wrong_bit_in_any_int8_format) {
  expect_found<packed_format::nibble_half>();
  expect_found<packed_format::nibble_half_min>();
  expect_found<packed_format::nibble_super_min>();
  expect_found<packed_format::byte_half>();
  expect_found<packed_format::byte_half_min>();
  expect_found<packed_format::byte_super_min>();
  expect_found<packed_format::six_super16>();
}

TEST(table_check, finds_bf16_products_that_are_too_far_off) {
  kernel_table table = emulated_kernels();
  table.matmul[kIndex<packed_format::bf16>] = &truncated_bf16;
  auto found = first_difference(portable_kernels(), table);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->format, packed_format::bf16);
  table.matmul[kIndex<packed_format::bf16>] = &overrunning<packed_format::bf16>;
  EXPECT_TRUE(first_difference(portable_kernels(), table).has_value());
}

TEST(table_check, times_products_of_every_int8_format) {
  for (const packed_format format : {packed_format::nibble_half, packed_format::six_super16}) {
    const product_seconds seconds = time_products(vector_kernels(), format);
    EXPECT_GT(seconds.few_rows, 0);
    EXPECT_GT(seconds.many_rows, 0);
  }
}

TEST(table_check, a_kernel_reaches_as_far_down_as_it_is_faster) {
  const product_seconds vector{.few_rows = 2, .many_rows = 60};
  EXPECT_EQ(worthwhile(vector, {.few_rows = 1, .many_rows = 30}), kernel_reach::few_rows);
  EXPECT_EQ(worthwhile(vector, {.few_rows = 3, .many_rows = 30}), kernel_reach::many_rows);
  EXPECT_EQ(worthwhile(vector, {.few_rows = 3, .many_rows = 70}), kernel_reach::none);
}

#if defined(TANDEM_X86_KERNELS)
TEST(table_check, the_choice_takes_each_format_from_the_table_that_was_faster_and_bf16_always_from_amx) {
  // Filling the tables runs what the compiler made of it for that instruction set.
  if (!choose_isa("avx512")) GTEST_SKIP() << "needs AVX-512";
  std::array<kernel_reach, kPackedFormats> reach{};
  reach[kIndex<packed_format::byte_half>] = kernel_reach::few_rows;
  reach[kIndex<packed_format::six_super16>] = kernel_reach::many_rows;
  const kernel_table& few = amx_kernels();
  const kernel_table& many = amx_kernels_for_many_rows();
  const kernel_table table = combined(avx512_kernels(), few, many, reach);
  EXPECT_EQ(table.matmul[kIndex<packed_format::byte_half>], few.matmul[kIndex<packed_format::byte_half>]);
  EXPECT_EQ(table.matmul[kIndex<packed_format::six_super16>], many.matmul[kIndex<packed_format::six_super16>]);
  EXPECT_EQ(table.matmul[kIndex<packed_format::nibble_half>],
            avx512_kernels().matmul[kIndex<packed_format::nibble_half>]);
  EXPECT_EQ(table.matmul[kIndex<packed_format::bf16>], few.matmul[kIndex<packed_format::bf16>]);
  EXPECT_EQ(table.matmul[kIndex<packed_format::fp32>], avx512_kernels().matmul[kIndex<packed_format::fp32>]);
}

TEST(table_check, a_difference_is_told_in_one_line_with_format_rows_and_what_happens) {
  const std::string line = warning_of({packed_format::nibble_super_min, 31});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  for (const char* part : {"Q4_K", "31 rows", "AVX-512 is used instead"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part;
  }
}

#if defined(__linux__)
TEST(table_check, the_compiled_amx_kernels_pass_the_check_at_start) {
  if (!choose_isa("avx512")) GTEST_SKIP() << "needs AVX-512";
  const test::trapped_tiles trap;
  ASSERT_TRUE(choose_amx_kernels());
  const kernel_table& chosen = chosen_amx_kernels();
  EXPECT_EQ(chosen.matmul[kIndex<packed_format::bf16>], amx_kernels().matmul[kIndex<packed_format::bf16>]);
  for (std::size_t i = 0; i < kIndex<packed_format::bf16>; ++i) {
    const matmul_function function = chosen.matmul[i];
    EXPECT_TRUE(function == avx512_kernels().matmul[i] || function == amx_kernels().matmul[i] ||
                function == amx_kernels_for_many_rows().matmul[i]);
  }
}
#endif
#endif

}  // namespace
}  // namespace tandem::gpu::host

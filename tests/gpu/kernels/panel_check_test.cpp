/// The check that decides at start whether AMX may be trusted, with emulated kernels and with planted faults.

#include "gpu/host/kernels/panel_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "amx_lab.hpp"
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
#include "tests/support/trapped_tiles.hpp"
#endif

namespace tandem::gpu::host {
namespace {

template <packed_format Format>
constexpr std::size_t kIndex = static_cast<std::size_t>(Format);

/// The emulated kernel, with one output off by a thousandth when there are at least MinRows rows.
template <packed_format Format, std::int32_t MinRows>
void faulty(const matmul_task& task) {
  emulated_kernels().matmul[kIndex<Format>](task);
  if (task.rows < MinRows) return;
  float& last = task.out[(task.rows - 1) * task.out_stride + task.outputs - 1];
  last += 0.001F * std::abs(last);
}

/// Writes one output more than the panel has.
template <packed_format Format>
void overrunning(const matmul_task& task) {
  emulated_kernels().matmul[kIndex<Format>](task);
  if (task.outputs < kPanelOutputs) task.out[task.outputs] = 0;
}

/// Forgets the last block.
template <packed_format Format>
void truncated(const matmul_task& task) {
  matmul_task less = task;
  --less.blocks;
  emulated_kernels().matmul[kIndex<Format>](less);
}

template <packed_format Format>
void expect_found() {
  kernel_table table = emulated_kernels();
  table.matmul[kIndex<Format>] = &faulty<Format, 1>;
  auto found = first_panel_fault(table);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->format, Format);
  EXPECT_EQ(found->rows, 1);
  table.matmul[kIndex<Format>] = &faulty<Format, 17>;
  found = first_panel_fault(table);
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(found->rows, 16);
  table.matmul[kIndex<Format>] = &overrunning<Format>;
  EXPECT_TRUE(first_panel_fault(table).has_value());
  table.matmul[kIndex<Format>] = &truncated<Format>;
  EXPECT_TRUE(first_panel_fault(table).has_value());
}

TEST(panel_check, finds_no_fault_in_emulated_kernels) {
  EXPECT_FALSE(first_panel_fault(emulated_kernels()).has_value());
}

TEST(panel_check, finds_planted_faults_in_any_format) {
  expect_found<packed_format::panel_nibble_half>();
  expect_found<packed_format::panel_nibble_half_min>();
  expect_found<packed_format::panel_nibble_super_min>();
  expect_found<packed_format::panel_byte_half>();
  expect_found<packed_format::panel_byte_half_min>();
  expect_found<packed_format::panel_byte_super_min>();
  expect_found<packed_format::panel_six_super16>();
  expect_found<packed_format::panel_bf16>();
}

TEST(panel_check, a_fault_is_told_in_one_line_with_format_rows_and_what_happens) {
  const std::string line = warning_of({packed_format::panel_nibble_super_min, 29});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  for (const char* part : {"Q4_K", "29 rows", "AVX-512 is used instead"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part;
  }
}

#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
TEST(panel_check, the_compiled_amx_kernels_prove_themselves) {
  if (amx_ways().size() < 2) GTEST_SKIP() << "needs AVX-512 with VBMI2";
  const test::trapped_tiles trap;
  EXPECT_TRUE(amx_proves_itself());
}
#endif

}  // namespace
}  // namespace tandem::gpu::host

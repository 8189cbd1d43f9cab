/// AMX kernels, emulated where the machine has no AMX: the accuracy of their summation for every format, the bits of
/// the plain emulation, and the same bits for every row count.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "amx_lab.hpp"
#include "gpu/host/kernels/panel_check.hpp"
#include "gpu/host/kernels/tile_shapes.hpp"
#include "gpu/host/tile_packer.hpp"
#include "gpu/reference/matmul_reference.hpp"
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
#include "tests/support/trapped_tiles.hpp"
#endif

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

constexpr std::int32_t kRowCounts[] = {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 48, 64, 70};
constexpr std::int32_t kMostRows = 70;

struct panel_kind {
  tensor_kind kind;
  packed_format format;
};
constexpr panel_kind kBlockKinds[] = {{tensor_kind::q4_0, packed_format::panel_nibble_half},
                                      {tensor_kind::q4_1, packed_format::panel_nibble_half_min},
                                      {tensor_kind::q4_k, packed_format::panel_nibble_super_min},
                                      {tensor_kind::q5_0, packed_format::panel_byte_half},
                                      {tensor_kind::q8_0, packed_format::panel_byte_half},
                                      {tensor_kind::bf16, packed_format::panel_byte_half},
                                      {tensor_kind::q5_1, packed_format::panel_byte_half_min},
                                      {tensor_kind::q5_k, packed_format::panel_byte_super_min},
                                      {tensor_kind::q6_k, packed_format::panel_six_super16},
                                      {tensor_kind::bf16, packed_format::panel_bf16}};

/// One block, units and chunks of 8 blocks that are not full, several chunks.
std::vector<std::int32_t> columns_of(panel_kind which) {
  if (model::traits(which.kind).block_elements == 256) return {256, 768};
  if (which.format == packed_format::panel_bf16) return {1, 2, 31, 32, 33, 77, 577};
  return {32, 96, 544};
}

class amx_matmul : public testing::TestWithParam<amx_way> {
 protected:
  amx_matmul() {
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
    if (GetParam().is_machine_code) trap_.emplace();
#endif
  }
  const kernel_table& kernels() const {
    return *GetParam().table;
  }

#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
  std::optional<test::trapped_tiles> trap_;
#endif
};

void expect_bound(const panel_lab& lab, const kernel_table& kernels, std::int32_t rows) {
  std::vector<float> x = lab.rounded_inputs();
  x.resize(static_cast<std::size_t>(rows * lab.columns()));
  std::vector<double> exact(static_cast<std::size_t>(rows * kPanelOutputs));
  std::vector<double> magnitude(exact.size());
  reference::matmul_reference(x, lab.weights(), lab.columns(), exact, magnitude);
  const std::vector<float> out = lab.product(kernels, rows, kPanelOutputs);
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_LE(std::abs(double{out[i]} - exact[i]), (lab.columns() / 2 + 4) * 0x1p-24 * magnitude[i] + 1e-37)
        << panel_name(lab.format()) << ", " << lab.columns() << " columns, " << rows << " rows, element " << i;
  }
}

TEST_P(amx_matmul, meets_the_bound_of_its_summation_for_every_format_and_row_count) {
  for (const panel_kind which : kBlockKinds) {
    for (const std::int32_t columns : columns_of(which)) {
      const made_tensor made(which.kind, 32, columns, 3);
      const panel_lab lab(made, which.format, made_inputs(kMostRows, columns, 5));
      for (const std::int32_t rows : kRowCounts) expect_bound(lab, kernels(), rows);
    }
  }
}

TEST_P(amx_matmul, of_bf16_meets_the_bound_for_any_columns) {
  for (const std::int32_t columns : columns_of({tensor_kind::f32, packed_format::panel_bf16})) {
    const made_tensor made(tensor_kind::f32, 32, columns, 29);
    const panel_lab lab(made, packed_format::panel_bf16, made_inputs(kMostRows, columns, 31));
    for (const std::int32_t rows : kRowCounts) expect_bound(lab, kernels(), rows);
  }
}

TEST_P(amx_matmul, multiplies_with_the_files_numbers_to_within_a_bf16) {
  for (const panel_kind which : kBlockKinds) {
    const made_tensor made(which.kind, 32, 256, 7);
    const panel_lab lab(made, which.format, made_inputs(1, 256, 9));
    const std::vector<float> used = lab.weights();
    const aligned_bytes panel = allocate_aligned(tile_bytes(which.format, 256));
    pack_tile(which.format, made.weight, 0, panel.get());
    std::vector<float> row(256);
    for (std::int32_t n = 0; n < 32; ++n) {
      unpack_row(which.format, panel.get(), n, 256, row.data());
      float largest = 0;
      for (const float value : row) largest = std::max(largest, std::abs(value));
      for (std::size_t k = 0; k < 256; ++k) {
        const float weight = used[static_cast<std::size_t>(n) * 256 + k];
        ASSERT_NEAR(weight, row[k], std::abs(row[k]) * 0x1p-7F + largest * 0x1p-14F)
            << panel_name(which.format) << " output " << n << " input " << k;
      }
    }
  }
}

TEST_P(amx_matmul, has_the_bits_of_the_emulation) {
  for (const panel_kind which : kBlockKinds) {
    const made_tensor made(which.kind, 32, 768, 37);
    const panel_lab lab(made, which.format, made_inputs(kMostRows, 768, 41));
    for (const std::int32_t rows : {1, 16, 30, kMostRows}) {
      const std::vector<float> expected = lab.product(emulated_kernels(), rows, kPanelOutputs);
      EXPECT_EQ(differing(lab.product(kernels(), rows, kPanelOutputs), expected), 0U)
          << panel_name(which.format) << ", " << rows << " rows";
    }
  }
}

TEST_P(amx_matmul, gives_a_row_the_same_bits_in_any_company) {
  for (const panel_kind which : kBlockKinds) {
    const made_tensor made(which.kind, 32, 768, 37);
    const panel_lab lab(made, which.format, made_inputs(kMostRows, 768, 41));
    std::vector<float> alone;
    for (std::int32_t row = 0; row < kMostRows; ++row) {
      const std::vector<float> one = lab.product(kernels(), 1, 13, row);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    for (const std::int32_t rows : kRowCounts) {
      const std::vector<float> expected(alone.begin(), alone.begin() + rows * 13);
      EXPECT_EQ(differing(lab.product(kernels(), rows, 13), expected), 0U)
          << panel_name(which.format) << ", " << rows << " rows";
    }
  }
}

TEST_P(amx_matmul, leaves_the_sums_that_it_would_write) {
  for (const panel_kind which : {kBlockKinds[1], kBlockKinds[8], kBlockKinds[9]}) {
    const made_tensor made(which.kind, 32, 512, 43);
    const panel_lab lab(made, which.format, made_inputs(kMostRows, 512, 47));
    for (const std::int32_t rows : kRowCounts)
      EXPECT_EQ(differing(lab.sums(kernels(), rows), lab.product(kernels(), rows, kPanelOutputs)), 0U)
          << panel_name(which.format) << ", " << rows << " rows";
  }
}

TEST_P(amx_matmul, writes_only_the_outputs_a_panel_has) {
  for (const panel_kind which : {kBlockKinds[0], kBlockKinds[7], kBlockKinds[8]}) {
    const made_tensor made(which.kind, 32, 256, 43);
    const panel_lab lab(made, which.format, made_inputs(kMostRows, 256, 47));
    const std::vector<float> all = lab.product(kernels(), kMostRows, kPanelOutputs);
    for (std::int32_t outputs = 1; outputs <= kPanelOutputs; ++outputs) {
      for (const std::int32_t rows : {1, 17, kMostRows}) {
        const std::vector<float> out = lab.product(kernels(), rows, outputs);
        for (std::size_t i = 0; i < out.size(); ++i) {
          const std::size_t row = i / static_cast<std::size_t>(outputs);
          ASSERT_EQ(out[i], all[row * kPanelOutputs + i % static_cast<std::size_t>(outputs)]);
        }
      }
    }
  }
}

TEST_P(amx_matmul, confines_nan_and_infinity_to_their_rows_and_takes_denormals_as_zero) {
  for (const panel_kind which : kBlockKinds) {
    const made_tensor made(which.kind, 32, 256, 53);
    std::vector<float> inputs = made_inputs(20, 256, 59);
    const panel_lab clean(made, which.format, inputs);
    inputs[1 * 256 + 40] = std::numeric_limits<float>::quiet_NaN();
    inputs[3 * 256 + 95] = std::numeric_limits<float>::infinity();
    std::fill_n(inputs.begin() + 5 * 256, 256, 1e-39F);
    const panel_lab lab(made, which.format, inputs);
    const std::vector<float> out = lab.product(kernels(), 20, kPanelOutputs);
    const std::vector<float> expected = clean.product(kernels(), 20, kPanelOutputs);
    for (std::size_t n = 0; n < kPanelOutputs; ++n) {
      EXPECT_TRUE(std::isnan(out[kPanelOutputs + n]));
      EXPECT_FALSE(std::isfinite(out[3 * kPanelOutputs + n]));
      EXPECT_EQ(out[5 * kPanelOutputs + n], 0.0F);
    }
    for (const std::size_t row : {0, 2, 4, 6, 19}) {
      for (std::size_t n = 0; n < kPanelOutputs; ++n)
        EXPECT_EQ(out[row * kPanelOutputs + n], expected[row * kPanelOutputs + n]);
    }
  }
}

TEST_P(amx_matmul, of_extreme_fields_and_inputs_meets_the_bound) {
  for (const panel_kind which : kBlockKinds) {
    if (model::traits(which.kind).block_elements == 1) continue;
    for (const int fill : {0x00, 0xFF, 0x80, 0x7F}) {
      made_tensor made(which.kind, 32, 256, 23);
      const auto block = static_cast<std::size_t>(model::traits(which.kind).block_bytes);
      const std::size_t head = model::traits(which.kind).block_elements == 256 ? 16 : 4;
      for (std::size_t i = 0; i < made.bytes.size(); ++i) {
        const bool is_quant = which.kind == tensor_kind::q6_k ? i % block < 192 : i % block >= head;
        if (is_quant) made.bytes[i] = static_cast<std::byte>(fill);
      }
      std::vector<float> inputs(std::size_t{33} * 256, 3e4F);
      std::fill_n(inputs.begin(), 16 * 256, -1e-20F);
      expect_bound(panel_lab(made, which.format, inputs), kernels(), 33);
    }
  }
}

#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
TEST_P(amx_matmul, runs_as_few_tile_instructions_as_promised) {
  if (!GetParam().is_machine_code) GTEST_SKIP() << "this way runs no tile instructions";
  if (choose_isa("amx")) GTEST_SKIP() << "this machine runs them itself, so none are counted";
  const made_tensor made(tensor_kind::q4_0, 32, 64, 61);
  const panel_lab lab(made, packed_format::panel_nibble_half, made_inputs(64, 64, 67));
  const long before = trap_->count();
  lab.product(kernels(), 16, kPanelOutputs);
  // Shapes, two sums cleared, per block three loads and two products, two stores, the release.
  EXPECT_EQ(trap_->count(), before + 1 + 2 + 2 * 5 + 2 + 1);
}
#endif

INSTANTIATE_TEST_SUITE_P(by, amx_matmul, testing::ValuesIn(amx_ways()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tandem::gpu::host

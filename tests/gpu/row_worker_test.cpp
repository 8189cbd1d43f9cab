#include "gpu/host/row_worker.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/gpu/kernels/made_tensor.hpp"
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
#include "tests/support/trapped_tiles.hpp"
#endif

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

constexpr std::int32_t kHidden = 256;
constexpr std::int32_t kWidth = 512;

struct gated_mlp {
  explicit gated_mlp(tensor_kind kind)
      : gate(kind, kWidth, kHidden, 1),
        up(tensor_kind::q8_0, kWidth, kHidden, 2),
        down(kind, 96, kWidth, 3),
        gate_up(packed({&gate.weight, &up.weight}, packing::native, isa::amx)),
        last(packed({&down.weight}, packing::native, isa::amx)) {}

  std::vector<float> by_rows(row_worker& work, std::int32_t rows) const {
    std::vector<float> sums(static_cast<std::size_t>(rows * 2 * kWidth));
    std::vector<float> gated(static_cast<std::size_t>(rows * kWidth));
    work.multiply(gate_up, rows, sums.data());
    activations& input = work.input_of(last, rows);
    for (std::int32_t row = 0; row < rows; ++row) {
      work.ops().gate(sums.data() + row * 2 * kWidth, kWidth, gated.data() + row * kWidth);
      input.convert(isa::amx, gated.data(), row, row + 1);
    }
    return product(work, rows);
  }
  std::vector<float> product(row_worker& work, std::int32_t rows) const {
    std::vector<float> out(static_cast<std::size_t>(rows * 96));
    work.multiply(last, rows, out.data());
    return out;
  }

  made_tensor gate, up, down;
  packed_matrix gate_up, last;
};

/// AMX packs and runs here, trapped where the machine has none.
bool can_run_panels() {
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
  const bool unpacks = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
  return detect_isa() >= isa::avx512 && unpacks;
#else
  return false;
#endif
}

TEST(row_worker, gated_in_one_step_has_the_bits_of_three) {
  if (!can_run_panels()) GTEST_SKIP() << "needs AVX-512 with VBMI2";
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
  const test::trapped_tiles trap;
#endif
  compute_team team(2);
  for (const tensor_kind kind : {tensor_kind::q4_1, tensor_kind::q6_k, tensor_kind::bf16}) {
    const gated_mlp mlp(kind);
    ASSERT_TRUE(row_worker::can_gate(mlp.gate_up, mlp.last));
    for (const std::int32_t rows : {1, 2, 15, 16, 17, 29, 75, 600}) {
      row_worker in_three(team, isa::amx, rows);
      row_worker in_one(team, isa::amx, rows);
      const std::vector<float> inputs = made_inputs(rows, kHidden, 5);
      for (row_worker* work : {&in_three, &in_one})
        work->input_of(mlp.gate_up, rows).convert(isa::amx, inputs.data(), 0, rows);
      in_one.multiply_gated(mlp.gate_up, rows, mlp.last);
      EXPECT_EQ(mlp.product(in_one, rows), mlp.by_rows(in_three, rows)) << rows;
    }
  }
}

TEST(row_worker, gates_by_rows_what_has_no_whole_panels_or_shares_the_place_of_its_inputs) {
  const made_tensor square(tensor_kind::q8_0, 2 * kHidden, kHidden, 1);
  const made_tensor down(tensor_kind::q8_0, 64, kHidden, 1);
  const made_tensor part(tensor_kind::q8_0, 48, kHidden, 1);
  const made_tensor whole(tensor_kind::q8_0, 64, kHidden, 1);
  for (const isa set : {isa::portable, isa::avx2, isa::avx512})
    EXPECT_FALSE(packed({&whole.weight, &whole.weight}, packing::native, set).can_gate());
  EXPECT_TRUE(packed({&whole.weight, &whole.weight}, packing::native, isa::amx).can_gate());
  EXPECT_FALSE(packed({&part.weight, &part.weight}, packing::native, isa::amx).can_gate());
  const packed_matrix next = packed({&down.weight}, packing::native, isa::amx);
  EXPECT_FALSE(row_worker::can_gate(packed({&square.weight}, packing::native, isa::amx), next));
}

}  // namespace
}  // namespace tandem::gpu::host

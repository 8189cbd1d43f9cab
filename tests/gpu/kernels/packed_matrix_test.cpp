/// Packing and reading back; errors.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "gpu/host/bf16.hpp"
#include "gpu/host/packed_layout.hpp"
#include "made_tensor.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

TEST(packed_matrix, gives_back_quantised_rows_bit_for_bit) {
  for (const tensor_kind kind : kAllKinds) {
    const made_tensor made(kind, 37, 768, 3);
    const packed_matrix matrix = packed({&made.weight}, packing::native, isa::portable);
    const std::vector<float> expected = made.values();
    std::vector<float> row(768);
    for (std::int64_t n = 0; n < 37; ++n) {
      matrix.row(n, row.data());
      for (std::size_t k = 0; k < 768; ++k) {
        const float value = expected[static_cast<std::size_t>(n) * 768 + k];
        const float stored = kind == tensor_kind::f16 ? model::bfloat16_to_float(float_to_bf16(value)) : value;
        ASSERT_EQ(row[k], stored) << made.weight.name << " row " << n << " column " << k;
      }
    }
  }
}

TEST(packed_matrix, of_fp32_packing_gives_back_every_kind_bit_for_bit) {
  for (const tensor_kind kind : kAllKinds) {
    const made_tensor made(kind, 17, 256, 5);
    const packed_matrix matrix = packed({&made.weight}, packing::fp32, isa::portable);
    EXPECT_EQ(matrix.wants(), activation_kind::fp32);
    const std::vector<float> expected = made.values();
    std::vector<float> row(256);
    matrix.row(16, row.data());
    for (std::size_t k = 0; k < 256; ++k) ASSERT_EQ(row[k], expected[16 * 256 + k]) << made.weight.name;
  }
}

TEST(packed_matrix, stacks_parts_of_mixed_quantised_kinds_without_requantising) {
  const made_tensor query(tensor_kind::q4_k, 33, 256, 1);
  const made_tensor value(tensor_kind::q6_k, 16, 256, 2);
  const packed_matrix matrix = packed({&query.weight, &value.weight}, packing::native, isa::portable);
  EXPECT_EQ(matrix.rows(), 49);
  EXPECT_EQ(matrix.tiles(), 4);
  EXPECT_EQ(matrix.wants(), activation_kind::int8);
  std::vector<float> row(256);
  matrix.row(33, row.data());
  const std::vector<float> expected = value.values();
  for (std::size_t k = 0; k < 256; ++k) ASSERT_EQ(row[k], expected[k]);
}

TEST(packed_matrix, takes_the_most_precise_input_any_part_needs) {
  const made_tensor quantised(tensor_kind::q8_0, 16, 64, 1);
  const made_tensor half(tensor_kind::f16, 16, 64, 2);
  const made_tensor full(tensor_kind::f32, 16, 64, 3);
  EXPECT_EQ(packed({&quantised.weight, &half.weight}, packing::native, isa::portable).wants(), activation_kind::bf16);
  EXPECT_EQ(packed({&quantised.weight, &full.weight}, packing::native, isa::portable).wants(), activation_kind::fp32);
  EXPECT_EQ(packed({&quantised.weight, &full.weight}, packing::bf16, isa::portable).wants(), activation_kind::bf16);
}

TEST(packed_matrix, is_close_to_the_size_of_its_file) {
  const auto ratio = [](tensor_kind kind) {
    const made_tensor made(kind, 64, 512, 1);
    return static_cast<double>(packed({&made.weight}, packing::native, isa::portable).bytes()) /
           static_cast<double>(made.bytes.size());
  };
  EXPECT_LE(ratio(tensor_kind::q4_0), 1.001);
  EXPECT_LE(ratio(tensor_kind::q4_1), 1.001);
  EXPECT_LE(ratio(tensor_kind::q4_k), 1.03);
  EXPECT_LE(ratio(tensor_kind::q6_k), 1.02);
  EXPECT_LE(ratio(tensor_kind::q8_0), 1.001);
}

TEST(packed_matrix, packed_by_many_threads_is_the_same) {
  const made_tensor made(tensor_kind::q4_k, 200, 512, 7);
  const auto on_threads = [](std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) {
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i, i + 1); });
    for (std::thread& thread : threads) thread.join();
  };
  const model::tensor* weights[] = {&made.weight};
  const auto together = packed_matrix::pack(weights, packing::native, isa::portable, on_threads);
  ASSERT_TRUE(together.has_value());
  const std::vector<float> inputs = made_inputs(2, 512, 1);
  EXPECT_EQ(product(*together, isa::portable, inputs, 2),
            product(packed({&made.weight}, packing::native, isa::portable), isa::portable, inputs, 2));
}

TEST(packed_matrix, that_shares_its_memory_outlives_the_others) {
  const made_tensor made(tensor_kind::q8_0, 64, 64, 9);
  std::vector<packed_matrix> matrices;
  for (int i = 0; i < 20; ++i) matrices.push_back(packed({&made.weight}, packing::native, isa::portable));
  const packed_matrix last = std::move(matrices.back());
  matrices.clear();
  const packed_matrix next = packed({&made.weight}, packing::native, isa::portable);
  std::vector<float> row(64);
  const std::vector<float> expected = made.values();
  for (std::int64_t n = 0; n < 64; ++n) {
    last.row(n, row.data());
    for (std::size_t k = 0; k < 64; ++k) ASSERT_EQ(row[k], expected[static_cast<std::size_t>(n) * 64 + k]);
  }
}

TEST(packed_matrix, refuses_tensors_that_do_not_fit_together) {
  const made_tensor wide(tensor_kind::q8_0, 16, 64, 1);
  const made_tensor narrow(tensor_kind::q8_0, 16, 32, 2);
  const auto on_this_thread = [](std::int64_t count, const auto& body) { body(0, count); };
  const model::tensor* weights[] = {&wide.weight, &narrow.weight};
  const auto refused = packed_matrix::pack(weights, packing::native, isa::portable, on_this_thread);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, error_code::unsupported);
  EXPECT_NE(refused.error().message.find("16 x 32"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(packed_matrix::pack({}, packing::native, isa::portable, on_this_thread).has_value());
}

TEST(packed_matrix, refuses_a_row_that_ends_inside_a_block) {
  made_tensor made(tensor_kind::q8_0, 16, 64, 1);
  made.weight.columns = 48;
  const model::tensor* weights[] = {&made.weight};
  const auto refused = packed_matrix::pack(weights, packing::native, isa::portable,
                                           [](std::int64_t count, const auto& body) { body(0, count); });
  EXPECT_FALSE(refused.has_value());
}

TEST(bf16, rounds_ties_to_even_and_keeps_nan_and_infinity) {
  const auto rounded = [](float value) { return model::bfloat16_to_float(float_to_bf16(value)); };
  EXPECT_EQ(rounded(1.00390625F), 1.0F);
  EXPECT_EQ(rounded(1.01171875F), 1.015625F);
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::signaling_NaN())));
  EXPECT_TRUE(std::isinf(rounded(std::numeric_limits<float>::max())));
}

}  // namespace
}  // namespace tandem::gpu::host

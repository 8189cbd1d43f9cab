/// Kernels against double precision. Tolerances are bounds from the number formats, not from what was observed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/host/bf16.hpp"
#include "gpu/reference/matmul_reference.hpp"
#include "made_tensor.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

/// 32 values rounded to int8 with one scale, back as numbers.
std::vector<float> rounded_block(const float* values) {
  std::vector<float> out(32, 0.0F);
  float largest = 0;
  for (std::size_t k = 0; k < 32; ++k) largest = std::max(largest, std::abs(values[k]));
  if (largest == 0) return out;
  const float inverse = 127.0F / largest;
  for (std::size_t k = 0; k < 32; ++k) out[k] = std::nearbyint(values[k] * inverse) * (largest / 127.0F);
  return out;
}

/// A row of int8 blocks; with two terms a block whose largest value exceeds four root mean squares of the row is
/// rounded a second time (docs/decisions/0011).
std::vector<float> rounded_row(const float* row, std::int64_t columns, bool two_terms) {
  double energy = 0;
  for (std::int64_t k = 0; k < columns; ++k) energy += double{row[k]} * row[k];
  const double limit = 4.0 * std::sqrt(energy / static_cast<double>(columns));
  std::vector<float> out;
  for (std::int64_t begin = 0; begin < columns; begin += 32) {
    std::vector<float> block = rounded_block(row + begin);
    double largest = 0;
    std::vector<float> left(32);
    for (std::size_t k = 0; k < 32; ++k) {
      largest = std::max(largest, std::abs(double{row[begin + static_cast<std::int64_t>(k)]}));
      left[k] = row[begin + static_cast<std::int64_t>(k)] - block[k];
    }
    const std::vector<float> second = rounded_block(left.data());
    if (two_terms && largest > limit)
      for (std::size_t k = 0; k < 32; ++k) block[k] += second[k];
    out.insert(out.end(), block.begin(), block.end());
  }
  return out;
}

/// The inputs as the kernel sees them, back as numbers: isolates the kernel from the rounding of its inputs.
std::vector<float> as_seen(activation_kind kind, const std::vector<float>& inputs, std::int64_t columns) {
  if (kind == activation_kind::fp32) return inputs;
  std::vector<float> out;
  if (kind == activation_kind::bf16 || kind == activation_kind::bf16_columns) {
    for (const float value : inputs) out.push_back(model::bfloat16_to_float(float_to_bf16(value)));
    return out;
  }
  for (std::size_t row = 0; row < inputs.size(); row += static_cast<std::size_t>(columns)) {
    const std::vector<float> seen = rounded_row(inputs.data() + row, columns, kind == activation_kind::int8_pair);
    out.insert(out.end(), seen.begin(), seen.end());
  }
  return out;
}

/// `slack`: roundings of size 2^-24 an output may collect, relative to Σ|x·w|.
void expect_close(const packed_matrix& matrix, isa set, const std::vector<float>& weights,
                  const std::vector<float>& inputs, std::int32_t rows, double slack, const std::string& what) {
  const std::vector<float> seen = as_seen(matrix.wants(), inputs, matrix.columns());
  // Panels keep the file's numbers and round them to bf16 as they multiply; amx_matmul_test has the tighter bound.
  const double weight_error = matrix.wants() == activation_kind::bf16_columns ? 0x1p-6 : 0;
  std::vector<double> exact(static_cast<std::size_t>(rows * matrix.rows()));
  std::vector<double> magnitude(exact.size());
  reference::matmul_reference(seen, weights, matrix.columns(), exact, magnitude);
  const std::vector<float> out = product(matrix, set, inputs, rows);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double bound = (slack * 0x1p-24 + weight_error) * magnitude[i] + 1e-37;
    ASSERT_LE(std::abs(double{out[i]} - exact[i]), bound) << what << " element " << i << " exact " << exact[i];
  }
}

std::int32_t smallest_columns(tensor_kind kind) {
  return std::max(32, model::traits(kind).block_elements);
}

std::vector<float> rows_of(const packed_matrix& matrix) {
  std::vector<float> out(static_cast<std::size_t>(matrix.rows() * matrix.columns()));
  for (std::int64_t row = 0; row < matrix.rows(); ++row) matrix.row(row, out.data() + row * matrix.columns());
  return out;
}

class matmul_accuracy : public testing::TestWithParam<isa> {};

TEST_P(matmul_accuracy, of_every_kind_meets_the_bound_of_its_summation) {
  for (const tensor_kind kind : kAllKinds) {
    for (const std::int32_t columns : {smallest_columns(kind), 7 * smallest_columns(kind), 1536}) {
      const made_tensor made(kind, 21, columns, 17);
      const packed_matrix matrix = packed({&made.weight}, packing::native, GetParam());
      // A minimum may cancel most of the products, so bounds are in the larger terms: four times the magnitude.
      expect_close(matrix, GetParam(), rows_of(matrix), made_inputs(5, columns, 19), 5, 4.0 * columns + 64,
                   made.weight.name + " columns " + std::to_string(columns));
    }
  }
}

TEST_P(matmul_accuracy, of_bf16_and_fp32_packing_meets_the_bound_for_odd_columns) {
  for (const std::int32_t columns : {1, 2, 33, 577}) {
    const made_tensor made(tensor_kind::f32, 21, columns, 23);
    for (const packing how : {packing::bf16, packing::fp32}) {
      const packed_matrix matrix = packed({&made.weight}, how, GetParam());
      expect_close(matrix, GetParam(), rows_of(matrix), made_inputs(5, columns, 29), 5, columns + 8, "columns");
    }
  }
}

TEST_P(matmul_accuracy, of_weights_rounded_at_load_meets_the_bound_of_its_summation) {
  for (const tensor_kind kind : {tensor_kind::f32, tensor_kind::f16, tensor_kind::bf16}) {
    for (const std::int32_t columns : {32, 224, 1536}) {
      const made_tensor made(kind, 21, columns, 17);
      const packed_matrix matrix = packed({&made.weight}, packing::int8, GetParam());
      expect_close(matrix, GetParam(), rows_of(matrix), made_inputs(5, columns, 19), 5, 4.0 * columns + 64,
                   made.weight.name + " rounded, columns " + std::to_string(columns));
    }
  }
}

/// Rows that differ in how many of their blocks stand out: none, one, two, … of them.
std::vector<float> inputs_with_outliers(std::int32_t rows, std::int32_t columns, unsigned seed) {
  std::vector<float> inputs = made_inputs(rows, columns, seed);
  for (std::int32_t row = 0; row < rows; ++row) {
    for (std::int32_t i = 0; i < row; ++i)
      inputs[static_cast<std::size_t>(row * columns + (i * 71 + 5) % columns)] *= 40.0F;
  }
  return inputs;
}

TEST_P(matmul_accuracy, of_two_terms_meets_the_bound_of_its_summation) {
  for (const tensor_kind kind : {tensor_kind::q4_1, tensor_kind::q4_k, tensor_kind::q6_k, tensor_kind::q8_0}) {
    for (const std::int32_t columns : {256, 2304}) {  // more than one word of kept blocks in the second
      const made_tensor made(kind, 21, columns, 17);
      const packed_matrix matrix = packed({&made.weight}, packing::native_precise, GetParam());
      expect_close(matrix, GetParam(), rows_of(matrix), inputs_with_outliers(13, columns, 19), 13, 6.0 * columns + 64,
                   made.weight.name + " columns " + std::to_string(columns));
    }
  }
}

/// Relative root mean square error against exact inputs, for rows with outliers.
double relative_error(tensor_kind kind, packing how, isa set) {
  const made_tensor made(kind, 64, 1536, 31);
  const packed_matrix matrix = packed({&made.weight}, how, set);
  const std::vector<float> inputs = inputs_with_outliers(8, 1536, 37);
  std::vector<double> exact(8 * 64);
  std::vector<double> magnitude(exact.size());
  reference::matmul_reference(inputs, made.values(), 1536, exact, magnitude);
  const std::vector<float> out = product(matrix, set, inputs, 8);
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    error += (out[i] - exact[i]) * (out[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(error / size);
}

TEST_P(matmul_accuracy, of_int8_inputs_is_within_two_percent_of_exact_inputs_and_of_two_terms_within_a_half_percent) {
  for (const tensor_kind kind : {tensor_kind::q4_1, tensor_kind::q4_k, tensor_kind::q6_k, tensor_kind::q8_0}) {
    EXPECT_LE(relative_error(kind, packing::native, GetParam()), 0.02) << model::traits(kind).name;
    EXPECT_LE(relative_error(kind, packing::native_precise, GetParam()), 0.005) << model::traits(kind).name;
  }
}

TEST_P(matmul_accuracy, is_exact_for_saturated_inputs_and_weights) {
  // Largest magnitudes everywhere, in both signs: where 16-bit intermediate sums would overflow.
  for (const tensor_kind kind : {tensor_kind::q4_0, tensor_kind::q5_1, tensor_kind::q6_k, tensor_kind::q8_0}) {
    for (const int fill : {0x00, 0xFF, 0x80, 0x7F}) {
      made_tensor made(kind, 16, 256, 41);
      const auto block = static_cast<std::size_t>(model::traits(kind).block_bytes);
      for (std::size_t i = 0; i < made.bytes.size(); ++i) {
        const bool is_quant = kind == tensor_kind::q6_k ? i % block < 192 : i % block >= 4;
        if (is_quant) made.bytes[i] = static_cast<std::byte>(fill);
      }
      const packed_matrix matrix = packed({&made.weight}, packing::native, GetParam());
      for (const float value : {127.0F, -127.0F}) {
        const std::vector<float> inputs(256, value);
        expect_close(matrix, GetParam(), rows_of(matrix), inputs, 1, 256, made.weight.name + std::to_string(fill));
      }
    }
  }
}

TEST_P(matmul_accuracy, of_zero_inputs_is_zero) {
  for (const tensor_kind kind : kAllKinds) {
    const made_tensor made(kind, 21, 256, 43);
    const packed_matrix matrix = packed({&made.weight}, packing::native, GetParam());
    for (const float out : product(matrix, GetParam(), std::vector<float>(512, 0.0F), 2)) EXPECT_EQ(out, 0.0F);
  }
}

TEST_P(matmul_accuracy, of_denormal_inputs_stays_finite_and_tiny) {
  for (const tensor_kind kind : kAllKinds) {
    const made_tensor made(kind, 21, 256, 47);
    const packed_matrix matrix = packed({&made.weight}, packing::native, GetParam());
    std::vector<float> inputs(256, std::numeric_limits<float>::denorm_min());
    inputs[3] = -1e-39F;
    for (const float out : product(matrix, GetParam(), inputs, 1)) EXPECT_LE(std::abs(out), 1e-33F);
  }
}

TEST_P(matmul_accuracy, keeps_a_large_and_a_small_block_apart) {
  // One block's scale must not reach the next: 1e30 in block 0 of a weight row that is zero there.
  made_tensor made(tensor_kind::f32, 16, 64, 53);
  std::memset(made.bytes.data(), 0, made.bytes.size());
  for (std::size_t n = 0; n < 16; ++n) {
    const float one = 1.0F;
    std::memcpy(made.bytes.data() + (n * 64 + 40) * 4, &one, 4);
  }
  std::vector<float> inputs(64, 0.0F);
  inputs[0] = 1e30F;
  inputs[40] = 0.5F;
  const packed_matrix matrix = packed({&made.weight}, packing::native, GetParam());
  for (const float out : product(matrix, GetParam(), inputs, 1)) EXPECT_EQ(out, 0.5F);
}

INSTANTIATE_TEST_SUITE_P(on, matmul_accuracy, testing::ValuesIn(offered_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace tandem::gpu::host

#include "gpu/host/row_worker.hpp"

namespace tandem::gpu::host {

activations& row_worker::input_of(const packed_matrix& matrix, std::int32_t rows) {
  activations& input = input_of(matrix);
  input.expect(rows);
  return input;
}

activations& row_worker::input_of(const packed_matrix& matrix) {
  const auto columns = static_cast<std::int32_t>(matrix.columns());
  const auto key = std::pair(matrix.wants(), columns);
  const auto found = inputs_.find(key);
  if (found != inputs_.end()) return found->second;
  return inputs_.emplace(key, activations(matrix.wants(), max_rows_, columns)).first->second;
}

void row_worker::multiply(const packed_matrix& matrix, std::int32_t rows, float* out) {
  const activations& input = input_of(matrix);
  team_.parallel_for(matrix.tiles(), 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    matrix.multiply(input, rows, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), out, matrix.rows());
  });
}

void row_worker::multiply_gated(const packed_matrix& gate_up, std::int32_t rows, const packed_matrix& down) {
  const activations& input = input_of(gate_up);
  activations& gated = input_of(down, rows);
  team_.parallel_for(gate_up.tiles() / 2, 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    gate_up.multiply_gated(input, rows, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), ops_, gated);
  });
}

}  // namespace tandem::gpu::host

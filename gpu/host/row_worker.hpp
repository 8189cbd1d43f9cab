#pragma once
/// Work on the rows of a forward, split over the team's threads; rows are converted once for all matrices that take the
/// same form. Owner: an executor; the device's leader thread only.

#include <cstdint>
#include <map>
#include <utility>

#include "gpu/host/compute_team.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "gpu/host/row_ops.hpp"

namespace tandem::gpu::host {

class row_worker {
 public:
  row_worker(compute_team& team, isa set, std::int32_t max_rows)
      : team_(team), set_(set), max_rows_(max_rows), ops_(row_ops_for(set)) {}

  const row_ops& ops() const { return ops_; }
  isa set() const { return set_; }
  compute_team& team() { return team_; }
  std::int32_t max_rows() const { return max_rows_; }

  /// Where the inputs of `matrix` are put, `rows` of them, before multiply().
  activations& input_of(const packed_matrix& matrix, std::int32_t rows);
  /// Makes the place for them; otherwise that happens when they are first put there.
  void prepare(const packed_matrix& matrix) { input_of(matrix); }

  /// body(row) for rows [0, rows), on whatever threads.
  template <class Body>
  void for_each_row(std::int32_t rows, Body body) {
    team_.parallel_for(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
      for (auto row = static_cast<std::int32_t>(begin); row < static_cast<std::int32_t>(end); ++row) body(row);
    });
  }

  /// out: rows × matrix.rows(), from the first `rows` inputs.
  void multiply(const packed_matrix& matrix, std::int32_t rows, float* out);

  /// Whether gates and ups can become inputs of `down` in one step. Matrices of equal width share the place of their
  /// inputs, so these cannot.
  static bool can_gate(const packed_matrix& gate_up, const packed_matrix& down) {
    return gate_up.can_gate() && down.wants() == activation_kind::bf16_columns && gate_up.columns() != down.columns();
  }
  /// silu(gate) · up of all `rows` inputs of `gate_up`, as inputs of `down`.
  void multiply_gated(const packed_matrix& gate_up, std::int32_t rows, const packed_matrix& down);

 private:
  activations& input_of(const packed_matrix& matrix);

  static constexpr std::int64_t kRowGrain = 4;  // rows: less is not worth waking a thread

  compute_team& team_;
  isa set_;
  std::int32_t max_rows_;
  const row_ops& ops_;
  std::map<std::pair<activation_kind, std::int32_t>, activations> inputs_;  // by kind and columns
};

}  // namespace tandem::gpu::host

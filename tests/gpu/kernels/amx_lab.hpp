#pragma once
/// Products of one panel straight through a kernel_table, and the AMX tables that can be tried on this machine.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/host/activations.hpp"
#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/kernels/kernel_table.hpp"
#include "made_tensor.hpp"

namespace tandem::gpu::host {

/// The kernels over tiles in plain C++ and the portable unpacking.
const kernel_table& emulated_kernels();

/// One way to run AMX kernels.
struct amx_way {
  std::string name;
  const kernel_table* table;
  bool is_machine_code;  ///< its AMX instructions raise SIGILL without AMX: see tests/support/trapped_tiles.hpp
};
/// Emulated ones everywhere; compiled ones where AVX-512 with what unpacking needs is there.
std::vector<amx_way> amx_ways();

/// One panel packed from the first rows of a tensor, and inputs that may be multiplied with it.
class panel_lab {
 public:
  panel_lab(const made_tensor& tensor, packed_format format, std::vector<float> inputs);
  /// Rows [first, first + rows) times outputs [0, outputs), row by row; checks that nothing else was written.
  std::vector<float> product(const kernel_table& kernels, std::int32_t rows, std::int32_t outputs,
                             std::int32_t first = 0) const;
  /// The sums of that, row by row, as they are left.
  std::vector<float> sums(const kernel_table& kernels, std::int32_t rows) const;
  packed_format format() const { return format_; }
  std::int32_t columns() const { return columns_; }
  /// As they are multiplied, 32 × columns.
  std::vector<float> weights() const;
  /// The inputs as they are multiplied.
  std::vector<float> rounded_inputs() const;

 private:
  matmul_task task_of(const activations& x, std::int32_t rows) const;

  std::int32_t columns_;
  packed_format format_;
  std::vector<float> inputs_;
  aligned_bytes panel_;
};

/// Elements that differ in any bit (a NaN equals a NaN).
std::size_t differing(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace tandem::gpu::host

#pragma once
/// Products of one tile straight through a kernel_table, and the AMX tables that can be tried on this machine.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/kernels/kernel_table.hpp"
#include "made_tensor.hpp"

namespace tandem::gpu::host {

/// AMX kernels over emulated tiles and portable lanes, from 16 rows on.
const kernel_table& emulated_kernels();

/// A way to run AMX kernels.
struct amx_way {
  std::string name;
  const kernel_table* table;
  bool is_machine_code;  ///< which traps where the machine lacks AMX
};
/// emulated; on x86-64 with AVX-512 also the compiled kernels, from 16 and from kManyRows rows on.
std::vector<amx_way> amx_ways();

/// The table whose bits AMX must have: the best vector kernels of this machine.
const kernel_table& vector_kernels();

/// One tile of a made tensor and input rows for it.
class tile_lab {
 public:
  /// `inputs`: rows of `columns` values; `how`: native, native_precise or bf16.
  tile_lab(const made_tensor& tensor, packing how, const std::vector<float>& inputs);

  /// [rows][outputs], for the rows from `first` on. Fails the test when anything beside them is written.
  std::vector<float> product(const kernel_table& kernels, std::int32_t rows, std::int32_t outputs,
                             std::int32_t first = 0) const;
  packed_format format() const { return format_; }
  /// The weights as the kernels see them: [16][columns].
  std::vector<float> weights() const;

 private:
  std::int32_t columns_;
  packed_format format_;
  activation_kind kind_;
  aligned_bytes tile_;
  activations x_;
};

/// Elements with other bits; two NaNs count as equal.
std::size_t differing(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace tandem::gpu::host

#pragma once
/// What one thread of this machine can do at most: each arithmetic instruction of the kernels in a loop over registers,
/// and a plain read of memory. Every kernel is reported as a share of the limit that binds it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/host/packed_matrix.hpp"

namespace tandem::bench {

struct instruction_limit {
  std::string name;
  double operations;  ///< additions and multiplications of one run
  void (*run)();
};

/// Those that the kernels of `set` use.
std::vector<instruction_limit> limits_of(gpu::host::isa set);

/// The limit of a product over inputs of `kind`; empty when it has none.
std::string limit_of(gpu::host::isa set, gpu::host::activation_kind kind);

/// Reads `bytes`, a multiple of 4096, as fast as this machine can; the result depends on all of them.
std::uint64_t read_all(gpu::host::isa set, const std::byte* from, std::size_t bytes);

}  // namespace tandem::bench

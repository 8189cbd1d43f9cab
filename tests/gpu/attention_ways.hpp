#pragma once
/// Every way of attention that this machine can run.

#include <string>
#include <vector>

#include "gpu/host/attention.hpp"

namespace tandem::gpu::host {

struct attention_way {
  std::string name;
  const attention_kernels* table;
  bool rounds_bf16 = false;      ///< queries and weights, where keys and values are bf16
  bool is_machine_code = false;  ///< its AMX instructions raise SIGILL without AMX: see tests/support/trapped_tiles.hpp
};

/// One for each instruction set, and the tiles of AMX in plain C++; the compiled ones where there is AVX-512.
std::vector<attention_way> attention_ways();

}  // namespace tandem::gpu::host

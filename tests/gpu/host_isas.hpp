#pragma once
/// Every instruction set this machine can run.

#include <vector>

#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {

inline std::vector<isa> runnable_isas() {
  std::vector<isa> sets;
  for (const isa set : {isa::portable, isa::avx2, isa::avx512})
    if (set <= detect_isa()) sets.push_back(set);
  return sets;
}

}  // namespace tandem::gpu::host

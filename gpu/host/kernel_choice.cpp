// Which instruction set's row operations and attention run. The GEMMs choose for themselves (packed_matrix.hpp).
#include "core/assert.hpp"
#include "gpu/host/attention.hpp"
#include "gpu/host/row_ops.hpp"

namespace tandem::gpu::host {

const row_ops& row_ops_for(isa set) {
#if defined(__x86_64__)
  if (set >= isa::avx512) return row_ops_avx512();
  if (set == isa::avx2) return row_ops_avx2();
#endif
  TANDEM_ASSERT(set == isa::portable);
  return row_ops_portable();
}

const attention_kernels& attention_for(isa set) {
#if defined(__x86_64__)
  if (set == isa::amx) return attention_amx();
  if (set == isa::avx512) return attention_avx512();
  if (set == isa::avx2) return attention_avx2();
#endif
  TANDEM_ASSERT(set == isa::portable);
  return attention_portable();
}

}  // namespace tandem::gpu::host

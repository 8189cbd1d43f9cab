#include "gpu/host/row_ops_body.hpp"

namespace tandem::gpu::host {

const row_ops& row_ops_avx512() {
  return kRowOps;
}

}  // namespace tandem::gpu::host

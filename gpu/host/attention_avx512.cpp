#include "gpu/host/attention_body.hpp"

namespace tandem::gpu::host {

const attention_kernels& attention_avx512() {
  return kAttention;
}

}  // namespace tandem::gpu::host

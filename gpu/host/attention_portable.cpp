#include "gpu/host/attention_body.hpp"

namespace tandem::gpu::host {

const attention_kernels& attention_portable() {
  return kAttention;
}

}  // namespace tandem::gpu::host

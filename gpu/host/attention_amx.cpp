#include "gpu/host/attention_tiles.hpp"
#include "gpu/host/kernels/amx_tiles.hpp"

namespace tandem::gpu::host {

const attention_kernels& attention_amx() {
  static constexpr attention_kernels kTable = attention_tiles<amx_tiles>::table();
  return kTable;
}

}  // namespace tandem::gpu::host

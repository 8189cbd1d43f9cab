#include "gpu/host/kernels/kernel_table.hpp"

namespace tandem::gpu::host {

const kernel_table& kernels_for(isa set) {
#if defined(TANDEM_X86_KERNELS)
  switch (set) {
    case isa::portable:
      break;
    case isa::avx2:
      return avx2_kernels();
    case isa::avx512:
      return avx512_kernels();
    case isa::amx:
      return amx_kernels();
  }
#else
  static_cast<void>(set);
#endif
  return portable_kernels();
}

}  // namespace tandem::gpu::host

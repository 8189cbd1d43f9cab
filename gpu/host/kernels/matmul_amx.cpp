/// Panels with AMX (TILE, BF16) beside AVX-512. Fields of the header: see panel_matmul.hpp.
#include "gpu/host/kernels/amx_tiles.hpp"
#include "gpu/host/kernels/panel_matmul.hpp"
#include "gpu/host/kernels/panel_unpack_avx512.hpp"

namespace tandem::gpu::host {

const kernel_table& amx_kernels() {
  static const kernel_table table = [] {
    kernel_table made = with_panels<amx_tiles, panel_unpack_avx512>(avx512_kernels());
    made.interleave = &panel_unpack_avx512::interleave;
    return made;
  }();
  return table;
}

}  // namespace tandem::gpu::host

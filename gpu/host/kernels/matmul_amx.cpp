/// Every kernel for AMX (TILE, INT8, BF16) beside AVX-512. Fields of the header: see amx_int8_matmul.hpp,
/// amx_bf16_matmul.hpp.
#include "gpu/host/kernels/amx_tiles.hpp"
#include "gpu/host/kernels/lanes_amx.hpp"
#include "gpu/host/kernels/make_amx_table.hpp"

namespace tandem::gpu::host {

const kernel_table& amx_kernels() {
  static const kernel_table table = make_amx_table<amx_tiles, lanes_amx, &avx512_kernels, kTileRows>();
  return table;
}

const kernel_table& amx_kernels_for_many_rows() {
  static const kernel_table table = make_amx_table<amx_tiles, lanes_amx, &avx512_kernels, kManyRows>();
  return table;
}

}  // namespace tandem::gpu::host

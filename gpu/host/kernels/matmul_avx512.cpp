/// Every kernel for AVX-512 (F, BW, DQ, VL, VNNI, BF16). Fields of the header: see int8_matmul.hpp, float_matmul.hpp.
#include "gpu/host/kernels/lanes_avx512.hpp"
#include "gpu/host/kernels/make_table.hpp"

namespace tandem::gpu::host {

const kernel_table& avx512_kernels() {
  static constexpr kernel_table kTable = make_table<lanes_avx512, unpacked_dots>();
  return kTable;
}

}  // namespace tandem::gpu::host

/// Every kernel for AVX2, FMA and F16C. Fields of the header: see int8_matmul.hpp, float_matmul.hpp.
#include "gpu/host/kernels/lanes_avx2.hpp"
#include "gpu/host/kernels/make_table.hpp"

namespace tandem::gpu::host {

const kernel_table& avx2_kernels() {
  static constexpr kernel_table kTable = make_table<lanes_avx2, paired_dots>();
  return kTable;
}

}  // namespace tandem::gpu::host

/// Every kernel for a machine of which nothing is known. Fields of the header: see int8_matmul.hpp, float_matmul.hpp.
#include "gpu/host/kernels/lanes_portable.hpp"
#include "gpu/host/kernels/make_table.hpp"

namespace tandem::gpu::host {

const kernel_table& portable_kernels() {
  static constexpr kernel_table kTable = make_table<lanes_portable, unpacked_dots>();
  return kTable;
}

}  // namespace tandem::gpu::host

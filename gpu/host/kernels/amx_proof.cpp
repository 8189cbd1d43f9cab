#include <cstdio>

#include "gpu/host/kernels/panel_check.hpp"

namespace tandem::gpu::host {

bool amx_proves_itself() {
  static const bool right = [] {
    const auto fault = first_panel_fault(amx_kernels());
    if (fault) std::fputs(warning_of(*fault).c_str(), stderr);
    return !fault;
  }();
  return right;
}

}  // namespace tandem::gpu::host

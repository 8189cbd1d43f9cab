#include "tests/gpu/attention_ways.hpp"

#include "gpu/host/attention_tiles.hpp"
#include "tests/gpu/host_isas.hpp"
#include "tests/support/emulated_tiles.hpp"

namespace tandem::gpu::host {

std::vector<attention_way> attention_ways() {
  static constexpr attention_kernels kEmulated = attention_tiles<test::emulated_tiles>::table();
  std::vector<attention_way> ways = {{.name = "emulated_tiles", .table = &kEmulated, .rounds_bf16 = true}};
  for (const isa set : runnable_isas()) ways.push_back({std::string(isa_name(set)), &attention_for(set)});
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
  if (detect_isa() >= isa::avx512)
    ways.push_back({.name = "amx", .table = &attention_amx(), .rounds_bf16 = true, .is_machine_code = true});
#endif
  return ways;
}

}  // namespace tandem::gpu::host

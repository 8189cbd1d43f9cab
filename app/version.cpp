#include "app/version.hpp"

#include "gpu/host/packed_matrix.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tandem::app {
namespace {

#if defined(__x86_64__)
/// Structured extended features, cpuid leaf 7: Intel's manual, volume 2A, CPUID.
std::string cpu_features() {
  std::string features;
  const auto add = [&features](bool present, const char* name) {
    if (present) features += std::string(features.empty() ? "" : " ") + name;
  };
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __builtin_cpu_init();
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    add((ecx >> 11 & 1) != 0, "avx512-vnni");
    add((ecx >> 6 & 1) != 0, "avx512-vbmi2");
    add((edx >> 24 & 1) != 0, "amx-tile");
    add((edx >> 22 & 1) != 0, "amx-bf16");
  }
  if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) add((eax >> 5 & 1) != 0, "avx512-bf16");
  return features.empty() ? "none of ours" : features;
}
#else
std::string cpu_features() {
  return "portable";
}
#endif

}  // namespace

std::string version_text() {
  std::string text = "tandem " TANDEM_VERSION "\n";
  text +=
      "CPU features: " + cpu_features() + "; used: " + std::string(gpu::host::isa_name(gpu::host::detect_isa())) + "\n";
#ifdef TANDEM_HAS_CUDA
  return text + "CUDA: compiled in";
#else
  return text + "CUDA: not compiled in";
#endif
}

}  // namespace tandem::app

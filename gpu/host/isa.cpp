#include <cstdlib>

#include "gpu/host/packed_matrix.hpp"

#if defined(TANDEM_X86_KERNELS)
#include <cpuid.h>

#include "gpu/host/kernels/panel_check.hpp"
#endif
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tandem::gpu::host {
namespace {

#if defined(TANDEM_X86_KERNELS)

struct cpuid_leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

cpuid_leaf read_leaf(unsigned leaf, unsigned sub_leaf) {
  cpuid_leaf out;
  __get_cpuid_count(leaf, sub_leaf, &out.eax, &out.ebx, &out.ecx, &out.edx);
  return out;
}

bool has_bits(unsigned long long value, unsigned long long bits) {
  return (value & bits) == bits;
}

constexpr unsigned bit(int index) {
  return 1U << index;
}

/// Register state the operating system saves (XCR0); 0 without XSAVE.
unsigned long long saved_state() {
  if (!has_bits(read_leaf(1, 0).ecx, bit(27))) return 0;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
}

/// Linux gives a process the 8 KiB of tile registers only when it asks (Documentation/arch/x86/xstate.rst). Asked once,
/// for all threads, those that run and those to come.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // state component
  static const bool granted = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

/// Bit numbers: Intel SDM volume 2, CPUID; XCR0 bits 1, 2 (AVX), 5..7 (AVX-512), 17, 18 (AMX).
bool offers(isa set) {
  const cpuid_leaf basic = read_leaf(1, 0);
  const cpuid_leaf extended = read_leaf(7, 0);
  const unsigned long long state = saved_state();
  switch (set) {
    case isa::portable:
      return true;
    case isa::avx2:  // FMA, F16C, AVX; AVX2
      return has_bits(state, 0x6) && has_bits(basic.ecx, bit(12) | bit(28) | bit(29)) && has_bits(extended.ebx, bit(5));
    case isa::avx512:  // F, DQ, BW, VL; VNNI; BF16
      return offers(isa::avx2) && has_bits(state, 0xE6) &&
             has_bits(extended.ebx, bit(16) | bit(17) | bit(30) | bit(31)) && has_bits(extended.ecx, bit(11)) &&
             has_bits(read_leaf(7, 1).eax, bit(5));
    case isa::amx:  // VBMI, VBMI2; BF16, TILE
      return offers(isa::avx512) && has_bits(extended.ecx, bit(1) | bit(6)) && has_bits(state, 0x60000) &&
             has_bits(extended.edx, bit(22) | bit(24)) && may_use_tiles();
  }
  return false;
}

/// AMX is taken unasked only where it has shown that it computes products as it should.
isa best_offered() {
  if (offers(isa::amx) && amx_proves_itself()) return isa::amx;
  for (const isa set : {isa::avx512, isa::avx2}) {
    if (offers(set)) return set;
  }
  return isa::portable;
}

#else

bool offers(isa set) {
  return set == isa::portable;
}

isa best_offered() {
  return isa::portable;
}

#endif

}  // namespace

std::string_view isa_name(isa set) {
  switch (set) {
    case isa::portable:
      return "portable";
    case isa::avx2:
      return "avx2";
    case isa::avx512:
      return "avx512";
    case isa::amx:
      return "amx";
  }
  return "unknown";
}

isa detect_isa() {
  static const isa best = best_offered();
  return best;
}

result<isa> choose_isa(std::string_view name) {
  const char* forced = name.empty() ? std::getenv("TANDEM_ISA") : nullptr;
  if (forced != nullptr) name = forced;
  if (name.empty()) return detect_isa();
  for (const isa set : {isa::portable, isa::avx2, isa::avx512, isa::amx}) {
    if (name != isa_name(set)) continue;
    if (offers(set)) return set;
    return fail(error_code::unsupported,
                "This machine lacks the instruction set '" + std::string(name) + "'; the best it offers is '" +
                    std::string(isa_name(detect_isa())) + "', leave the option empty to use it.",
                "isa");
  }
  return fail(error_code::invalid_argument,
              "There is no instruction set '" + std::string(name) + "'; use portable, avx2, avx512 or amx.", "isa");
}

}  // namespace tandem::gpu::host

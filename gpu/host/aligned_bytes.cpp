#include "gpu/host/aligned_bytes.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tandem::gpu::host {

aligned_bytes allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kHugePage = 2U << 20;
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  aligned_bytes memory(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
#if defined(__linux__)
  // Advice must precede the first touch; a kernel without huge pages ignores it.
  if (memory && alignment == kHugePage) ::madvise(memory.get(), rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace tandem::gpu::host

#include "gpu/host/aligned_bytes.hpp"

#include <mutex>

#include "config/limits.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tandem::gpu::host {
namespace {

/// The chunk that small matrices are being cut from; owned by those matrices only.
struct open_chunk {
  std::mutex mutex;
  std::weak_ptr<std::byte> memory;
  std::size_t used = 0;
};

weight_bytes own(aligned_bytes bytes) {
  return weight_bytes(bytes.release(), free_bytes{});
}

}  // namespace

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

weight_bytes allocate_weights(std::size_t bytes) {
  static open_chunk open;
  constexpr std::size_t kLine = 64;
  const std::size_t rounded = (bytes + kLine - 1) / kLine * kLine;
  if (rounded > limits::kWeightChunkBytes / 2) return own(allocate_aligned(rounded));
  const std::lock_guard lock(open.mutex);
  weight_bytes chunk = open.memory.lock();
  if (!chunk || limits::kWeightChunkBytes - open.used < rounded) {
    chunk = own(allocate_aligned(limits::kWeightChunkBytes));
    if (!chunk) return chunk;
    open.memory = chunk;
    open.used = 0;
  }
  std::byte* at = chunk.get() + open.used;
  open.used += rounded;
  return weight_bytes(std::move(chunk), at);
}

}  // namespace tandem::gpu::host

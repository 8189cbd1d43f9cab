#pragma once
/// Memory for weights and activations: aligned to cache lines, on huge pages when it is large.

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace tandem::gpu::host {

struct free_bytes {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using aligned_bytes = std::unique_ptr<std::byte[], free_bytes>;

/// Uninitialised; null when the system has no memory.
aligned_bytes allocate_aligned(std::size_t bytes);

}  // namespace tandem::gpu::host

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

/// Memory of one matrix. Small matrices are cut from a common chunk, because a matrix on 4 KiB pages streams a fifth
/// slower; the chunk lives as long as any matrix in it. Thread-safe. Uninitialised; null when the system has no memory.
using weight_bytes = std::shared_ptr<std::byte>;
weight_bytes allocate_weights(std::size_t bytes);

}  // namespace tandem::gpu::host

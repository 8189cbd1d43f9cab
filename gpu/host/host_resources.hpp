#pragma once
/// What this process may use of the machine: cores, memory, and the rounding mode of its computing threads.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/result.hpp"

namespace tandem::gpu::host {

/// Cores the scheduler's affinity mask and the control group (cgroup v2 cpu.max, every level up) grant; at least 1.
std::int32_t granted_cores();

/// Bytes that can be allocated without swapping: MemAvailable, or what the control group leaves when that is less.
std::uint64_t available_memory();

/// Denormals are flushed to zero on the calling thread while the object lives. Every computing thread holds one, so
/// that a number does not depend on which thread made it.
class denormals_off {
 public:
  denormals_off();
  ~denormals_off();
  denormals_off(const denormals_off&) = delete;
  denormals_off& operator=(const denormals_off&) = delete;

 private:
  std::uint64_t before_ = 0;
};

/// Zeroed anonymous memory, aligned to a page, on huge pages where the kernel has them. Untouched parts cost nothing.
class page_memory {
 public:
  page_memory() = default;
  /// Error: io, with the number of bytes that were needed.
  static result<page_memory> map(std::size_t bytes);
  ~page_memory();
  page_memory(page_memory&& other) noexcept;
  page_memory& operator=(page_memory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tandem::gpu::host

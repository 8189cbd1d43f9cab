#include "gpu/host/host_resources.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tandem::gpu::host {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// Folder of this process's control group; the root when there is no v2 hierarchy.
std::filesystem::path own_cgroup() {
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);)
    if (line.rfind("0::/", 0) == 0) return std::filesystem::path(kCgroupRoot) / line.substr(4);
  return kCgroupRoot;
}

/// Calls visit(folder) for the process's group and every group above it.
template <class Visit>
void for_each_cgroup(Visit visit) {
  const std::filesystem::path root = kCgroupRoot;
  for (auto folder = own_cgroup(); folder.native().size() >= root.native().size(); folder = folder.parent_path())
    visit(folder);
}

/// "max 100000" or "150000 100000": quota and period in microseconds.
std::int32_t cores_of_quota(const std::string& line) {
  std::istringstream fields(line);
  double quota = 0;
  double period = 0;
  if (!(fields >> quota >> period) || period <= 0) return std::numeric_limits<std::int32_t>::max();
  return std::max(1, static_cast<std::int32_t>(quota / period));
}

std::uint64_t number_in(const std::filesystem::path& file) {
  std::istringstream fields(first_line(file));
  std::uint64_t value = kUnlimited;
  return fields >> value ? value : kUnlimited;
}

std::uint64_t machine_memory() {
  std::ifstream stream("/proc/meminfo");
  std::string key;
  std::uint64_t kibibytes = 0;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream fields(line);
    if (fields >> key >> kibibytes && key == "MemAvailable:") return kibibytes * 1024;
  }
  return kUnlimited;
}

}  // namespace

std::int32_t granted_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::int32_t cores = 1;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = std::max(1, CPU_COUNT(&mask));
  for_each_cgroup([&](const std::filesystem::path& folder) {
    cores = std::min(cores, cores_of_quota(first_line(folder / "cpu.max")));
  });
  return cores;
}

std::uint64_t available_memory() {
  std::uint64_t bytes = machine_memory();
  for_each_cgroup([&](const std::filesystem::path& folder) {
    const std::uint64_t limit = number_in(folder / "memory.max");
    const std::uint64_t used = number_in(folder / "memory.current");
    if (limit != kUnlimited && used != kUnlimited) bytes = std::min(bytes, limit > used ? limit - used : 0);
  });
  return bytes;
}

#if defined(__x86_64__)
denormals_off::denormals_off() : before_(_mm_getcsr()) {
  constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;
  _mm_setcsr(static_cast<unsigned>(before_) | kFlushToZeroAndDenormalsAreZero);
}
denormals_off::~denormals_off() {
  _mm_setcsr(static_cast<unsigned>(before_));
}
#elif defined(__aarch64__)
denormals_off::denormals_off() {
  asm volatile("mrs %0, fpcr" : "=r"(before_));
  asm volatile("msr fpcr, %0" ::"r"(before_ | (1ull << 24)));
}
denormals_off::~denormals_off() {
  asm volatile("msr fpcr, %0" ::"r"(before_));
}
#else
denormals_off::denormals_off() = default;
denormals_off::~denormals_off() = default;
#endif

result<page_memory> page_memory::map(std::size_t bytes) {
  page_memory memory;
  if (bytes == 0) return memory;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return fail(error_code::io, "The machine refused " + std::to_string(bytes >> 20) +
                                    " MiB of memory; lower the KV size or the model length.");
  madvise(address, bytes, MADV_HUGEPAGE);  // a wish: without it everything works, slower
  memory.data_ = static_cast<std::byte*>(address);
  memory.size_ = bytes;
  return memory;
}

page_memory::~page_memory() {
  if (data_ != nullptr) munmap(data_, size_);
}

page_memory::page_memory(page_memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

page_memory& page_memory::operator=(page_memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tandem::gpu::host

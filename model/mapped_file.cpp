#include "model/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tandem::model {
namespace {

tl::unexpected<error> system_failure(const std::filesystem::path& path, const char* what, int number) {
  const auto code = number == ENOENT || number == ENOTDIR ? error_code::not_found : error_code::io;
  return fail(code, fmt::format("{}: cannot {}: {}.", path.string(), what, std::strerror(number)), path.string());
}

result<std::span<const std::byte>> map(const std::filesystem::path& path, int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return system_failure(path, "read the file's size", errno);
  if (!S_ISREG(status.st_mode)) {
    return fail(error_code::io, fmt::format("{}: this is not a regular file.", path.string()), path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return std::span<const std::byte>();  // nothing to map
  void* start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) return system_failure(path, "map the file into memory", errno);
  return std::span(static_cast<const std::byte*>(start), size);
}

}  // namespace

result<std::shared_ptr<const mapped_file>> mapped_file::open(const std::filesystem::path& path) {
  // Non-blocking: opening a pipe by mistake must not wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_failure(path, "open the file", errno);
  const auto bytes = map(path, descriptor);
  ::close(descriptor);
  if (!bytes) return tl::unexpected(bytes.error());
  return std::shared_ptr<const mapped_file>(new mapped_file(*bytes));
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tandem::model

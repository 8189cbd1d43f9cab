#pragma once
/// A file mapped read-only.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "core/result.hpp"

namespace tandem::model {

/// Owner: the model that reads from it. Unmapped on destruction.
class mapped_file {
 public:
  /// Errors: not_found, io (no regular file, no permission).
  static result<std::shared_ptr<const mapped_file>> open(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit mapped_file(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace tandem::model

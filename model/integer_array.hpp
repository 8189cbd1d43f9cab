#pragma once
/// Whole numbers in a weights file: vocabulary maps, never weights.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tandem::model {

/// By reference into the mapped file, little-endian.
struct integer_array {
  std::string name;
  std::int32_t element_bytes = 8;  ///< 8 and 4: signed; 1: truth values
  std::int64_t count = 0;          ///< over all dimensions
  std::span<const std::byte> data;
  std::string file;
  std::uint64_t file_offset = 0;

  /// 0 ≤ index < count.
  std::int64_t at(std::int64_t index) const;
};

}  // namespace tandem::model

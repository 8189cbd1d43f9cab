#pragma once
/// The key-value section of a GGUF file. Values stay where they are in the file; every one was walked once, so reading
/// them cannot run past the end.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/byte_cursor.hpp"

namespace tandem::model {

/// Value types, numbered as in the GGUF specification.
enum class gguf_type : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64,
};
inline constexpr std::uint32_t kGgufTypes = 13;
std::string_view gguf_type_name(gguf_type type);
/// Bytes of one value; 0 for string and array.
std::size_t gguf_type_bytes(gguf_type type);

struct gguf_value {
  gguf_type type = gguf_type::u8;
  gguf_type element_type = gguf_type::u8;  ///< of an array
  std::uint64_t count = 1;                 ///< elements of an array
  std::span<const std::byte> bytes;        ///< a scalar's bytes, a string's characters, an array's encoded elements
};

struct gguf_entry {
  std::string_view key;
  std::uint64_t offset = 0;  ///< of the key's length, for messages
  gguf_value value;
};

/// Entries by key, in file order.
class gguf_metadata {
 public:
  /// Walks `count` entries. Failures stick in the cursor.
  static gguf_metadata parse(byte_cursor& cursor, std::uint64_t count);

  const gguf_entry* find(std::string_view key) const;
  std::span<const gguf_entry> entries() const { return entries_; }

 private:
  std::vector<gguf_entry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_key_;
};

/// Strings of an array of strings, in order.
std::vector<std::string_view> gguf_strings(const gguf_value& value);
/// A scalar or array element of an integer or boolean type as a signed number, and whether it fits one.
std::pair<std::int64_t, bool> gguf_integer(gguf_type type, std::span<const std::byte> bytes);
double gguf_real(gguf_type type, std::span<const std::byte> bytes);
/// Short, printable text of a value, for inspect.
std::string gguf_text(const gguf_value& value);

}  // namespace tandem::model

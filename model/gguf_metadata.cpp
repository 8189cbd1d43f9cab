#include "model/gguf_metadata.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/limits.hpp"
#include "model/printable.hpp"

namespace tandem::model {
namespace {

constexpr std::uint64_t kSmallestEntryBytes = 8 + 4 + 1;  // key length, type, a one-byte value

gguf_type read_type(byte_cursor& cursor, std::string_view field) {
  const std::uint64_t offset = cursor.position();
  const auto raw = cursor.read<std::uint32_t>(field);
  if (raw < kGgufTypes) return static_cast<gguf_type>(raw);
  cursor.reject(error_code::corrupt, field, offset, fmt::format("{} is no GGUF value type (0 to 12)", raw));
  return gguf_type::u8;
}

void check_boolean(byte_cursor& cursor, std::span<const std::byte> bytes, std::uint64_t offset) {
  const auto is_boolean = [](std::byte value) { return std::to_integer<int>(value) <= 1; };
  if (!std::all_of(bytes.begin(), bytes.end(), is_boolean)) {
    cursor.reject(error_code::corrupt, "value", offset, "a truth value must be 0 or 1");
  }
}

gguf_value read_array(byte_cursor& cursor, int depth);

// Walks over array elements whose size varies; each takes bytes of the file, so the loop ends with it.
void walk_elements(byte_cursor& cursor, gguf_type type, std::uint64_t count, int depth) {
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
    if (type == gguf_type::string) {
      cursor.read_string("array element", limits::kMaxMetadataStringBytes);
    } else {
      read_array(cursor, depth + 1);
    }
  }
}

gguf_value read_array(byte_cursor& cursor, int depth) {
  gguf_value value;
  value.type = gguf_type::array;
  const std::uint64_t start = cursor.position();
  if (depth >= limits::kMaxMetadataArrayDepth) {
    cursor.reject(error_code::corrupt, "array", start, "arrays are nested too deeply");
    return value;
  }
  value.element_type = read_type(cursor, "array element type");
  const std::uint64_t count_offset = cursor.position();
  value.count = cursor.read<std::uint64_t>("array count");
  const std::uint64_t begin = cursor.position();
  const std::size_t element_bytes = gguf_type_bytes(value.element_type);
  const std::uint64_t least_bytes = element_bytes != 0 ? element_bytes : 8;
  if (cursor.ok() && value.count > cursor.remaining() / least_bytes) {
    cursor.reject(error_code::corrupt, "array count", count_offset,
                  fmt::format("{} elements do not fit into the {} bytes left", value.count, cursor.remaining()));
    return value;
  }
  if (element_bytes != 0) {
    cursor.take(value.count * element_bytes, "array elements");
  } else {
    walk_elements(cursor, value.element_type, value.count, depth);
  }
  if (!cursor.ok()) return value;
  value.bytes = cursor.between(begin, cursor.position());
  if (value.element_type == gguf_type::boolean) check_boolean(cursor, value.bytes, begin);
  return value;
}

gguf_value read_value(byte_cursor& cursor) {
  gguf_value value;
  value.type = read_type(cursor, "value type");
  if (!cursor.ok()) return value;
  const std::uint64_t offset = cursor.position();
  if (value.type == gguf_type::array) return read_array(cursor, 0);
  if (value.type == gguf_type::string) {
    const auto text = cursor.read_string("value", limits::kMaxMetadataStringBytes);
    value.bytes = std::as_bytes(std::span(text));
    return value;
  }
  value.bytes = cursor.take(gguf_type_bytes(value.type), "value");
  if (value.type == gguf_type::boolean) check_boolean(cursor, value.bytes, offset);
  return value;
}

template <class T>
T load(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace

std::string_view gguf_type_name(gguf_type type) {
  static constexpr std::string_view kNames[kGgufTypes] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                          "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::size_t gguf_type_bytes(gguf_type type) {
  static constexpr std::size_t kBytes[kGgufTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

gguf_metadata gguf_metadata::parse(byte_cursor& cursor, std::uint64_t count) {
  gguf_metadata metadata;
  const std::uint64_t plausible = std::min(count, cursor.remaining() / kSmallestEntryBytes);
  metadata.entries_.reserve(plausible);
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
    cursor.describe(fmt::format("metadata entry {}", i));
    gguf_entry entry;
    entry.offset = cursor.position();
    entry.key = cursor.read_string("key", limits::kMaxMetadataKeyBytes);
    if (!cursor.ok()) break;
    cursor.describe(fmt::format("metadata entry {} \"{}\"", i, printable(entry.key, 80)));
    entry.value = read_value(cursor);
    if (!cursor.ok()) break;
    if (!metadata.by_key_.emplace(entry.key, metadata.entries_.size()).second) {
      cursor.reject(error_code::corrupt, "key", entry.offset, "the key appears twice");
    }
    metadata.entries_.push_back(entry);
  }
  return metadata;
}

const gguf_entry* gguf_metadata::find(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &entries_[found->second];
}

std::vector<std::string_view> gguf_strings(const gguf_value& value) {
  std::vector<std::string_view> strings;
  if (value.type != gguf_type::array || value.element_type != gguf_type::string) return strings;
  strings.reserve(value.count);
  byte_cursor cursor(value.bytes, "");
  for (std::uint64_t i = 0; i < value.count; ++i) {
    strings.push_back(cursor.read_string("", limits::kMaxMetadataStringBytes));
  }
  return strings;
}

std::pair<std::int64_t, bool> gguf_integer(gguf_type type, std::span<const std::byte> bytes) {
  switch (type) {
    case gguf_type::u8:
    case gguf_type::boolean:
      return {load<std::uint8_t>(bytes), true};
    case gguf_type::i8:
      return {load<std::int8_t>(bytes), true};
    case gguf_type::u16:
      return {load<std::uint16_t>(bytes), true};
    case gguf_type::i16:
      return {load<std::int16_t>(bytes), true};
    case gguf_type::u32:
      return {load<std::uint32_t>(bytes), true};
    case gguf_type::i32:
      return {load<std::int32_t>(bytes), true};
    case gguf_type::i64:
      return {load<std::int64_t>(bytes), true};
    case gguf_type::u64: {
      const auto value = load<std::uint64_t>(bytes);
      return {static_cast<std::int64_t>(value), value <= static_cast<std::uint64_t>(INT64_MAX)};
    }
    default:
      return {0, false};
  }
}

double gguf_real(gguf_type type, std::span<const std::byte> bytes) {
  if (type == gguf_type::f32) return load<float>(bytes);
  if (type == gguf_type::f64) return load<double>(bytes);
  return static_cast<double>(gguf_integer(type, bytes).first);
}

std::string gguf_text(const gguf_value& value) {
  constexpr std::size_t kShownCharacters = 120;
  switch (value.type) {
    case gguf_type::string:
      return printable({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()}, kShownCharacters);
    case gguf_type::array:
      return fmt::format("{} × {}", value.count, gguf_type_name(value.element_type));
    case gguf_type::boolean:
      return gguf_integer(value.type, value.bytes).first != 0 ? "true" : "false";
    case gguf_type::f32:
    case gguf_type::f64:
      return fmt::format("{:.9g}", gguf_real(value.type, value.bytes));
    case gguf_type::u64:
      return fmt::format("{}", load<std::uint64_t>(value.bytes));
    default:
      return fmt::format("{}", gguf_integer(value.type, value.bytes).first);
  }
}

}  // namespace tandem::model

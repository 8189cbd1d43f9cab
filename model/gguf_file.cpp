#include "model/gguf_file.hpp"

#include <fmt/format.h>

#include <bit>

#include "config/limits.hpp"
#include "model/byte_cursor.hpp"
#include "model/gguf_tensors.hpp"

namespace tandem::model {
namespace {

static_assert(std::endian::native == std::endian::little, "the readers load little-endian fields as they are");

constexpr std::uint32_t kDefaultAlignment = 32;

std::uint32_t read_version(byte_cursor& cursor) {
  const auto magic = cursor.take(4, "magic");
  if (cursor.ok() && std::memcmp(magic.data(), "GGUF", 4) != 0) {
    cursor.reject(error_code::corrupt, "magic", 0, "the file does not begin with \"GGUF\"; it is no GGUF file");
  }
  const auto version = cursor.read<std::uint32_t>("version");
  if (!cursor.ok() || version == 2 || version == 3) return version;
  if (version == 0x02000000U || version == 0x03000000U) {
    cursor.reject(error_code::unsupported, "version", 4, "the file is big-endian; convert it to little-endian");
  } else {
    cursor.reject(error_code::unsupported, "version", 4,
                  fmt::format("version {} is not supported, only 2 and 3 are; convert the file again", version));
  }
  return version;
}

std::uint64_t read_count(byte_cursor& cursor, std::string_view field, std::uint64_t most) {
  const std::uint64_t offset = cursor.position();
  const auto count = cursor.read<std::uint64_t>(field);
  if (count > most) {
    cursor.reject(error_code::corrupt, field, offset, fmt::format("{} is over the limit of {}", count, most));
  }
  return count;
}

std::uint32_t alignment_of(byte_cursor& cursor, const gguf_metadata& metadata) {
  const gguf_entry* entry = metadata.find("general.alignment");
  if (entry == nullptr) return kDefaultAlignment;
  cursor.describe("metadata");
  if (entry->value.type != gguf_type::u32) {
    cursor.reject(error_code::corrupt, "general.alignment", entry->offset, "it must be a u32");
    return kDefaultAlignment;
  }
  const auto value = static_cast<std::uint32_t>(gguf_integer(entry->value.type, entry->value.bytes).first);
  if (value < 8 || value > limits::kMaxTensorAlignment || !std::has_single_bit(value)) {
    cursor.reject(error_code::corrupt, "general.alignment", entry->offset,
                  fmt::format("{} is no power of two between 8 and {}", value, limits::kMaxTensorAlignment));
    return kDefaultAlignment;
  }
  return value;
}

}  // namespace

result<gguf_file> parse_gguf(std::span<const std::byte> bytes, std::string_view path) {
  byte_cursor cursor(bytes, path);
  cursor.describe("header");
  gguf_file file;
  file.path = path;
  file.version = read_version(cursor);
  const std::uint64_t tensor_count = read_count(cursor, "tensor count", limits::kMaxTensors);
  const std::uint64_t entry_count = read_count(cursor, "metadata count", limits::kMaxMetadataEntries);
  if (cursor.ok()) file.metadata = gguf_metadata::parse(cursor, entry_count);
  if (cursor.ok()) {
    const std::uint32_t alignment = alignment_of(cursor, file.metadata);
    file.tensors = parse_gguf_tensors(cursor, bytes, path, tensor_count, alignment);
  }
  if (!cursor.ok()) return tl::unexpected(cursor.failure());
  return file;
}

}  // namespace tandem::model

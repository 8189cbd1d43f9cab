#include "model/gguf_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "config/limits.hpp"
#include "model/printable.hpp"
#include "model/tensor_layout.hpp"

namespace tandem::model {
namespace {

constexpr std::uint64_t kSmallestTensorBytes = 8 + 4 + 8 + 4 + 8;  // name length, dimensions, one of them, kind, offset

// Numbers of ggml's tensor types.
std::optional<tensor_kind> kind_of(std::uint32_t number) {
  switch (number) {
    case 0:
      return tensor_kind::f32;
    case 1:
      return tensor_kind::f16;
    case 2:
      return tensor_kind::q4_0;
    case 3:
      return tensor_kind::q4_1;
    case 6:
      return tensor_kind::q5_0;
    case 7:
      return tensor_kind::q5_1;
    case 8:
      return tensor_kind::q8_0;
    case 12:
      return tensor_kind::q4_k;
    case 13:
      return tensor_kind::q5_k;
    case 14:
      return tensor_kind::q6_k;
    case 30:
      return tensor_kind::bf16;
    default:
      return std::nullopt;
  }
}

/// A tensor before the start of the data section is known.
struct announced {
  tensor info;
  std::uint64_t offset = 0;        // in the data section
  std::uint64_t offset_field = 0;  // where the file says so
  std::uint64_t bytes = 0;
};

// Dimensions as the file has them, innermost first, turned around.
std::vector<std::uint64_t> read_dimensions(byte_cursor& cursor) {
  const std::uint64_t offset = cursor.position();
  const auto count = cursor.read<std::uint32_t>("number of dimensions");
  if (cursor.ok() && (count == 0 || count > limits::kMaxTensorDimensions)) {
    cursor.reject(error_code::corrupt, "number of dimensions", offset,
                  fmt::format("{} is not between 1 and {}", count, limits::kMaxTensorDimensions));
  }
  std::vector<std::uint64_t> dimensions;
  for (std::uint32_t i = 0; i < count && cursor.ok(); ++i) {
    dimensions.push_back(cursor.read<std::uint64_t>("dimension"));
  }
  std::reverse(dimensions.begin(), dimensions.end());
  return dimensions;
}

announced read_description(byte_cursor& cursor, std::uint64_t index) {
  announced read;
  cursor.describe(fmt::format("tensor {}", index));
  read.info.name = cursor.read_string("name", limits::kMaxTensorNameBytes);
  cursor.describe(fmt::format("tensor {} \"{}\"", index, printable(read.info.name, 80)));
  const std::uint64_t shape_offset = cursor.position();
  const auto dimensions = read_dimensions(cursor);
  const std::uint64_t kind_offset = cursor.position();
  const auto number = cursor.read<std::uint32_t>("kind");
  read.offset_field = cursor.position();
  read.offset = cursor.read<std::uint64_t>("data offset");
  if (!cursor.ok()) return read;
  const auto kind = kind_of(number);
  if (!kind) {
    cursor.reject(error_code::unsupported, "kind", kind_offset,
                  fmt::format("kind {} is not one of F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K; "
                              "convert the file to one of these",
                              number));
    return read;
  }
  const auto extent = extent_of(dimensions, *kind);
  if (!extent) {
    cursor.reject(error_code::corrupt, "dimensions", shape_offset, extent.error());
    return read;
  }
  read.info.kind = *kind;
  read.info.rows = extent->rows;
  read.info.columns = extent->columns;
  read.bytes = extent->bytes;
  return read;
}

// Gives a tensor its bytes, when they lie inside the file.
void locate(byte_cursor& cursor, announced& read, std::span<const std::byte> file, std::uint64_t data_start,
            std::uint32_t alignment) {
  cursor.describe(fmt::format("tensor \"{}\"", printable(read.info.name, 80)));
  if (read.offset % alignment != 0) {
    cursor.reject(error_code::corrupt, "data offset", read.offset_field,
                  fmt::format("{} is no multiple of the alignment {}", read.offset, alignment));
    return;
  }
  const std::uint64_t available = file.size() - data_start;
  if (read.offset > available || read.bytes > available - read.offset) {
    cursor.reject(
        error_code::corrupt, "data offset", read.offset_field,
        fmt::format("{} bytes at {} of the data section end outside the file, whose data section has {} bytes; "
                    "the file is truncated or damaged",
                    read.bytes, read.offset, available));
    return;
  }
  read.info.file_offset = data_start + read.offset;
  read.info.data = file.subspan(read.info.file_offset, read.bytes);
}

void check_distinct(byte_cursor& cursor, std::span<const tensor> tensors) {
  std::unordered_set<std::string_view> names;
  for (const tensor& each : tensors) {
    if (names.insert(each.name).second) continue;
    cursor.describe("tensors");
    cursor.reject(error_code::corrupt, fmt::format("name \"{}\"", printable(each.name, 80)), each.file_offset,
                  "two tensors have this name");
  }
  const auto overlap = find_overlap(tensors);
  if (!overlap) return;
  cursor.describe("tensors");
  cursor.reject(error_code::corrupt, fmt::format("data of \"{}\"", printable(overlap->second->name, 80)),
                overlap->second->file_offset,
                fmt::format("it overlaps the data of \"{}\"", printable(overlap->first->name, 80)));
}

// Bytes of no tensor mean that descriptions are lost, and with them perhaps an output matrix.
void check_covered(byte_cursor& cursor, std::span<const tensor> tensors, std::uint64_t data_start,
                   std::uint64_t data_bytes, std::uint32_t alignment) {
  std::uint64_t used = 0;
  for (const tensor& each : tensors) used += (each.data.size() + alignment - 1) / alignment * alignment;
  if (used >= data_bytes) return;
  cursor.describe("tensors");
  cursor.reject(error_code::corrupt, "data section", data_start,
                fmt::format("{} of its {} bytes belong to no tensor", data_bytes - used, data_bytes));
}

}  // namespace

std::vector<tensor> parse_gguf_tensors(byte_cursor& cursor, std::span<const std::byte> bytes, std::string_view path,
                                       std::uint64_t count, std::uint32_t alignment) {
  std::vector<announced> read;
  read.reserve(std::min(count, cursor.remaining() / kSmallestTensorBytes));
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) read.push_back(read_description(cursor, i));
  std::vector<tensor> tensors;
  if (!cursor.ok()) return tensors;
  const std::uint64_t end = cursor.position();
  const std::uint64_t data_start = std::min<std::uint64_t>((end + alignment - 1) / alignment * alignment, bytes.size());
  tensors.reserve(read.size());
  for (announced& each : read) {
    locate(cursor, each, bytes, data_start, alignment);
    each.info.file = path;
    tensors.push_back(std::move(each.info));
  }
  if (cursor.ok()) check_distinct(cursor, tensors);
  if (cursor.ok()) check_covered(cursor, tensors, data_start, bytes.size() - data_start, alignment);
  return tensors;
}

}  // namespace tandem::model

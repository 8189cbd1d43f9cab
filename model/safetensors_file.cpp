#include "model/safetensors_file.hpp"

#include <fmt/format.h>

#include <optional>
#include <unordered_set>

#include "config/limits.hpp"
#include "model/byte_cursor.hpp"
#include "model/printable.hpp"
#include "model/tensor_layout.hpp"
#include "text/json_document.hpp"

namespace tandem::model {
namespace {

using text::json_field;

std::optional<tensor_kind> kind_of(std::string_view dtype) {
  if (dtype == "F32") return tensor_kind::f32;
  if (dtype == "F16") return tensor_kind::f16;
  if (dtype == "BF16") return tensor_kind::bf16;
  return std::nullopt;
}

std::int32_t integer_bytes_of(std::string_view dtype) {
  if (dtype == "I64") return 8;
  if (dtype == "I32") return 4;
  return dtype == "BOOL" ? 1 : 0;
}

/// Where a tensor's bytes lie in the data section.
struct byte_place {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Reads one file's header. The first failure sticks.
class header_reader {
 public:
  header_reader(std::span<const std::byte> data, std::uint64_t data_start, std::string_view path,
                std::vector<integer_array>* integers)
      : data_(data), data_start_(data_start), path_(path), integers_(integers) {}

  void read(simdjson::dom::object members) {
    for (const auto& member : members) {
      if (failure_) return;
      if (member.key == "__metadata__") continue;
      if (names_.size() == limits::kMaxTensors) {
        refuse(error_code::too_large, member.key, fmt::format("more than {} tensors", limits::kMaxTensors));
        return;
      }
      if (!names_.insert(member.key).second) refuse(error_code::corrupt, member.key, "two tensors have this name");
      read_tensor(member.key, json_field(member.value));
    }
    check_layout();
  }

  const std::optional<error>& failure() const { return failure_; }
  std::vector<tensor> take() { return std::move(tensors_); }

 private:
  void refuse(error_code code, std::string_view name, std::string_view problem) {
    if (failure_) return;
    failure_ = error{code, fmt::format("{}: header, tensor \"{}\": {}.", path_, printable(name, 120), problem),
                     std::string(path_)};
  }

  // `count` non-negative integers at most, or a failure.
  std::vector<std::uint64_t> numbers(std::string_view name, std::string_view field, json_field value,
                                     std::size_t most) {
    std::vector<std::uint64_t> out;
    if (!value.is_array() || value.items().size() > most) {
      refuse(error_code::corrupt, name, fmt::format("\"{}\" is no array of at most {} numbers", field, most));
      return out;
    }
    for (const simdjson::dom::element item : value.items()) {
      std::uint64_t number = 0;
      if (item.get(number)) refuse(error_code::corrupt, name, fmt::format("\"{}\" holds no whole number", field));
      out.push_back(number);
    }
    return out;
  }

  void read_tensor(std::string_view name, json_field fields) {
    if (name.size() > limits::kMaxTensorNameBytes) refuse(error_code::corrupt, name, "its name is too long");
    if (!fields.is_object()) refuse(error_code::corrupt, name, "its entry is no object");
    const auto shape = numbers(name, "shape", fields["shape"], limits::kMaxTensorDimensions);
    const auto offsets = numbers(name, "data_offsets", fields["data_offsets"], 2);
    if (!failure_ && offsets.size() != 2) refuse(error_code::corrupt, name, "\"data_offsets\" must be two numbers");
    if (!failure_) read_values(name, fields["dtype"].text_or(""), shape, {offsets[0], offsets[1]});
  }

  void read_values(std::string_view name, std::string_view dtype, std::span<const std::uint64_t> shape,
                   byte_place place) {
    const auto kind = kind_of(dtype);
    const std::int32_t integer_bytes = integers_ == nullptr ? 0 : integer_bytes_of(dtype);
    if (!kind && integer_bytes == 0) {
      return refuse(error_code::unsupported, name,
                    fmt::format("dtype \"{}\" is not supported, only F32, F16 and BF16 are", printable(dtype, 20)));
    }
    auto extent = extent_of(shape, kind.value_or(tensor_kind::f32));
    if (!extent) return refuse(error_code::corrupt, name, extent.error());
    if (!kind) extent->bytes = static_cast<std::uint64_t>(extent->rows * extent->columns * integer_bytes);
    if (!check_place(name, dtype, *extent, place)) return;
    const auto data = data_.subspan(place.begin, extent->bytes);
    const std::uint64_t offset = data_start_ + place.begin;
    if (kind) {
      tensors_.push_back({std::string(name), *kind, extent->rows, extent->columns, data, std::string(path_), offset});
    } else {
      integers_->push_back(
          {std::string(name), integer_bytes, extent->rows * extent->columns, data, std::string(path_), offset});
    }
  }

  bool check_place(std::string_view name, std::string_view dtype, const tensor_extent& extent, byte_place place) {
    if (place.begin > place.end || place.end > data_.size()) {
      refuse(error_code::corrupt, name,
             fmt::format("its bytes {} to {} are not inside the data section of {} bytes, which begins at offset {}; "
                         "the file is truncated or damaged",
                         place.begin, place.end, data_.size(), data_start_));
    } else if (place.end - place.begin != extent.bytes) {
      refuse(error_code::corrupt, name,
             fmt::format("{} bytes were given but {} × {} values of {} need {}", place.end - place.begin, extent.rows,
                         extent.columns, dtype, extent.bytes));
    }
    return !failure_;
  }

  void check_layout() {
    if (failure_) return;
    std::vector<tensor> all = tensors_;
    if (integers_ != nullptr) {
      for (const integer_array& each : *integers_)
        all.push_back({each.name, tensor_kind::f32, 1, 0, each.data, each.file, each.file_offset});
    }
    if (const auto overlap = find_overlap(all)) {
      refuse(error_code::corrupt, overlap->second->name,
             fmt::format("its data at offset {} overlaps that of \"{}\"", overlap->second->file_offset,
                         printable(overlap->first->name, 120)));
      return;
    }
    std::uint64_t used = 0;
    for (const tensor& each : all) used += each.data.size();
    if (used == data_.size()) return;
    failure_ = error{error_code::corrupt,
                     fmt::format("{}: {} of the {} data bytes after offset {} belong to no tensor.", path_,
                                 data_.size() - used, data_.size(), data_start_),
                     std::string(path_)};
  }

  std::span<const std::byte> data_;
  std::uint64_t data_start_;
  std::string_view path_;
  std::vector<integer_array>* integers_;
  std::vector<tensor> tensors_;
  std::unordered_set<std::string_view> names_;
  std::optional<error> failure_;
};

}  // namespace

result<std::vector<tensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view path,
                                              std::vector<integer_array>* integers) {
  byte_cursor cursor(bytes, path);
  const auto header = cursor.read_string("header length", limits::kMaxSafetensorsHeaderBytes);
  if (!cursor.ok()) return tl::unexpected(cursor.failure());
  text::json_document document;
  const auto root = document.parse(header, fmt::format("{}: the header", path));
  if (!root) return tl::unexpected(root.error());
  if (!root->is_object()) {
    return fail(error_code::corrupt, fmt::format("{}: the header at offset 8 is no JSON object.", path),
                std::string(path));
  }
  header_reader reader(bytes.subspan(cursor.position()), cursor.position(), path, integers);
  reader.read(json_field(*root).members());
  if (reader.failure()) return tl::unexpected(*reader.failure());
  return reader.take();
}

}  // namespace tandem::model

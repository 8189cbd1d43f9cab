#include "model/byte_cursor.hpp"

#include <fmt/format.h>

namespace tandem::model {

std::string_view byte_cursor::read_string(std::string_view field, std::uint64_t max_bytes) {
  const std::uint64_t start = position_;
  const auto length = read<std::uint64_t>(field);
  if (!ok()) return {};
  if (length > max_bytes) {
    reject(error_code::corrupt, field, start,
           fmt::format("its length of {} bytes is over the limit of {}", length, max_bytes));
    return {};
  }
  const auto raw = take(length, field);
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

std::span<const std::byte> byte_cursor::take(std::uint64_t count, std::string_view field) {
  if (!ok()) return {};
  if (count > remaining()) {
    reject(error_code::corrupt, field, position_,
           fmt::format("it needs {} bytes but the file has only {} left, so the file is truncated or damaged", count,
                       remaining()));
    return {};
  }
  const auto raw = bytes_.subspan(position_, count);
  position_ += count;
  return raw;
}

void byte_cursor::reject(error_code code, std::string_view field, std::uint64_t offset, std::string_view problem) {
  if (failure_) return;
  failure_ = error{
      code,
      fmt::format("{}: {}{}{} at offset {}: {}.", file_, what_, what_.empty() ? "" : ", ", field, offset, problem),
      std::string(file_)};
}

}  // namespace tandem::model

#pragma once
/// Reads little-endian fields from untrusted bytes. The first failure sticks; afterwards every read gives nothing.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/result.hpp"

namespace tandem::model {

/// Owner: one parse. Results that are views point into the bytes.
class byte_cursor {
 public:
  byte_cursor(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  /// What is being read, for messages, e.g. "tensor 3".
  void describe(std::string what) { what_ = std::move(what); }

  template <class T>
  T read(std::string_view field) {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const auto raw = take(sizeof(T), field);
    if (raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  /// A 64-bit length and that many bytes.
  std::string_view read_string(std::string_view field, std::uint64_t max_bytes);
  /// The next `count` bytes, or none and a failure.
  std::span<const std::byte> take(std::uint64_t count, std::string_view field);

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }
  std::span<const std::byte> between(std::uint64_t begin, std::uint64_t end) const {
    return bytes_.subspan(begin, end - begin);
  }

  bool ok() const { return !failure_; }
  const error& failure() const { return *failure_; }
  /// Records a failure about `field`, which starts at `offset`. Only the first one is kept.
  void reject(error_code code, std::string_view field, std::uint64_t offset, std::string_view problem);

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::string what_;
  std::uint64_t position_ = 0;
  std::optional<error> failure_;
};

}  // namespace tandem::model

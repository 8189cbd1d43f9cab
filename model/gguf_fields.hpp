#pragma once
/// Typed look-ups in GGUF metadata with bounds. The first failure sticks; afterwards every look-up gives its fallback.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "model/gguf_file.hpp"

namespace tandem::model {

class gguf_fields {
 public:
  explicit gguf_fields(const gguf_file& file) : file_(file) {}

  bool has(std::string_view key) const { return file_.metadata.find(key) != nullptr; }
  /// Any integer type, within [least, most]. Missing is a failure.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most);
  std::int64_t integer_or(std::string_view key, std::int64_t least, std::int64_t most, std::int64_t fallback);
  /// Any number, finite.
  double real(std::string_view key);
  double real_or(std::string_view key, double fallback);
  bool boolean_or(std::string_view key, bool fallback);
  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  std::vector<std::string_view> strings(std::string_view key);
  std::vector<std::int64_t> integers(std::string_view key);

  void refuse(error_code code, std::string_view key, std::string_view problem);
  const std::optional<error>& failure() const { return failure_; }

 private:
  const gguf_entry* need(std::string_view key);

  const gguf_file& file_;
  std::optional<error> failure_;
};

}  // namespace tandem::model

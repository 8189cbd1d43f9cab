#pragma once
/// Typed look-ups in a JSON object with bounds. The first failure sticks; afterwards look-ups give their fallback.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "text/json_document.hpp"

namespace tandem::model {

class config_fields {
 public:
  config_fields(text::json_field root, std::string_view path) : root_(root), path_(path) {}

  text::json_field root() const { return root_; }
  text::json_field operator[](std::string_view key) const { return root_[key]; }

  std::int64_t integer(std::string_view key, std::int64_t most) { return integer(root_, key, most); }
  std::int64_t integer_or(std::string_view key, std::int64_t most, std::int64_t fallback);
  bool boolean_or(std::string_view key, bool fallback);
  std::string text_or(std::string_view key, std::string_view fallback);
  /// The same in a nested object. Integers are at least 1.
  std::int64_t integer(text::json_field object, std::string_view key, std::int64_t most);
  double real(text::json_field object, std::string_view key);
  double real_or(text::json_field object, std::string_view key, double fallback);

  void refuse(error_code code, std::string_view key, std::string_view problem);
  const std::optional<error>& failure() const { return failure_; }

 private:
  text::json_field root_;
  std::string path_;
  std::optional<error> failure_;
};

}  // namespace tandem::model

#pragma once
/// Typed fields of a JSON object. Exact kinds, ranges, and the first mistake kept with the field's name.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/result.hpp"
#include "net/json_document.hpp"

namespace tandem::net {

/// Every reader gives nothing for an absent or null field, and for a wrong one, which problem() then tells.
class field_reader {
 public:
  explicit field_reader(const json_object& object) : object_(object) {}

  std::optional<bool> boolean(std::string_view name);
  /// 4 and 4.0 count as 4; "4" and 4.5 are refused.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view name, double low, double high);
  std::optional<std::string_view> string(std::string_view name, std::size_t max_bytes);
  std::optional<json_object> object(std::string_view name);
  std::optional<std::vector<json_value>> array(std::string_view name);
  std::optional<json_value> any(std::string_view name) const { return object_.find(name); }
  /// A list of token ids in [0, vocabulary), at most `max_count` of them.
  std::optional<std::vector<token_id>> tokens(std::string_view name, std::int32_t vocabulary, std::size_t max_count);
  /// The same for a value already found.
  std::optional<std::vector<token_id>> tokens_of(std::string_view name, const std::vector<json_value>& values,
                                                 std::int32_t vocabulary, std::size_t max_count);

  /// Keeps the first mistake.
  void refuse(std::string_view name, std::string message, error_code code = error_code::invalid_argument);
  /// Refuses when the field is there at all.
  void refuse_unsupported(std::string_view name);
  const std::optional<error>& problem() const { return problem_; }

 private:
  const json_object& object_;
  std::optional<error> problem_;
};

/// A JSON number that is a whole one, or nothing.
std::optional<std::int64_t> whole_number(json_value value);

inline constexpr std::int64_t kMinInt64 = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

}  // namespace tandem::net

#include "net/field_reader.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tandem::net {

std::optional<std::int64_t> whole_number(json_value value) {
  std::int64_t whole = 0;
  if (!value.get(whole)) return whole;
  double real = 0;
  // 2^63 itself does not fit; doubles below it do.
  if (value.is_double() && !value.get(real) && std::trunc(real) == real && std::abs(real) < 9.2e18) {
    return static_cast<std::int64_t>(real);
  }
  return std::nullopt;
}

void field_reader::refuse(std::string_view name, std::string message, error_code code) {
  if (!problem_) problem_ = error{code, std::move(message), std::string(name)};
}

void field_reader::refuse_unsupported(std::string_view name) {
  if (any(name)) refuse(name, fmt::format("'{}' is not supported yet; leave it out.", name), error_code::unsupported);
}

std::optional<bool> field_reader::boolean(std::string_view name) {
  const auto value = any(name);
  if (!value) return std::nullopt;
  bool flag = false;
  if (!value->get(flag)) return flag;
  refuse(name, fmt::format("'{}' must be true or false.", name));
  return std::nullopt;
}

std::optional<std::int64_t> field_reader::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const auto value = any(name);
  if (!value) return std::nullopt;
  const auto whole = whole_number(*value);
  if (whole && *whole >= low && *whole <= high) return whole;
  refuse(name, fmt::format("'{}' must be a whole number from {} to {}.", name, low, high));
  return std::nullopt;
}

std::optional<double> field_reader::number(std::string_view name, double low, double high) {
  const auto value = any(name);
  if (!value) return std::nullopt;
  double real = 0;
  if (!value->get(real) && real >= low && real <= high) return real;
  refuse(name, fmt::format("'{}' must be a number from {} to {}.", name, low, high));
  return std::nullopt;
}

std::optional<std::string_view> field_reader::string(std::string_view name, std::size_t max_bytes) {
  const auto value = any(name);
  if (!value) return std::nullopt;
  const auto text = as_string(*value);
  if (text && text->size() <= max_bytes) return text;
  refuse(name, text ? fmt::format("'{}' must not be longer than {} bytes.", name, max_bytes)
                    : fmt::format("'{}' must be a string.", name));
  return std::nullopt;
}

std::optional<json_object> field_reader::object(std::string_view name) {
  const auto value = any(name);
  if (!value) return std::nullopt;
  auto members = as_object(*value);
  if (!members) refuse(name, fmt::format("'{}' must be an object.", name));
  return members;
}

std::optional<std::vector<json_value>> field_reader::array(std::string_view name) {
  const auto value = any(name);
  if (!value) return std::nullopt;
  auto values = as_array(*value);
  if (!values) refuse(name, fmt::format("'{}' must be a list.", name));
  return values;
}

std::optional<std::vector<token_id>> field_reader::tokens(std::string_view name, std::int32_t vocabulary,
                                                          std::size_t max_count) {
  const auto values = array(name);
  if (!values) return std::nullopt;
  return tokens_of(name, *values, vocabulary, max_count);
}

std::optional<std::vector<token_id>> field_reader::tokens_of(std::string_view name,
                                                             const std::vector<json_value>& values,
                                                             std::int32_t vocabulary, std::size_t max_count) {
  if (values.size() > max_count) {
    refuse(name, fmt::format("'{}' has {} entries; at most {} are taken.", name, values.size(), max_count));
    return std::nullopt;
  }
  std::vector<token_id> tokens;
  tokens.reserve(values.size());
  for (const json_value& value : values) {
    const auto id = whole_number(value);
    if (!id || *id < 0 || *id >= vocabulary) {
      refuse(name, fmt::format("'{}' must hold token ids from 0 to {}.", name, vocabulary - 1));
      return std::nullopt;
    }
    tokens.push_back(static_cast<token_id>(*id));
  }
  return tokens;
}

}  // namespace tandem::net

#include "model/config_fields.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tandem::model {
namespace {

simdjson::simdjson_result<simdjson::dom::element> member(text::json_field object, std::string_view key) {
  if (!object.is_object()) return simdjson::NO_SUCH_FIELD;
  return object.members().at_key(key);
}

}  // namespace

void config_fields::refuse(error_code code, std::string_view key, std::string_view problem) {
  if (!failure_) failure_ = error{code, fmt::format("{}: \"{}\": {}.", path_, key, problem), path_};
}

std::int64_t config_fields::integer(text::json_field object, std::string_view key, std::int64_t most) {
  std::int64_t value = 0;
  if (!object[key]) {
    refuse(error_code::corrupt, key, "it is missing");
  } else if (member(object, key).get(value)) {
    refuse(error_code::corrupt, key, "it is not a whole number");
  } else if (value < 1 || value > most) {
    refuse(error_code::corrupt, key, fmt::format("{} is not between 1 and {}", value, most));
  }
  return failure_ ? 1 : value;
}

std::int64_t config_fields::integer_or(std::string_view key, std::int64_t most, std::int64_t fallback) {
  return root_[key] ? integer(root_, key, most) : fallback;
}

bool config_fields::boolean_or(std::string_view key, bool fallback) {
  bool value = fallback;
  if (root_[key] && member(root_, key).get(value)) refuse(error_code::corrupt, key, "it is neither true nor false");
  return value;
}

std::string config_fields::text_or(std::string_view key, std::string_view fallback) {
  std::string_view value = fallback;
  if (root_[key] && member(root_, key).get(value)) refuse(error_code::corrupt, key, "it is not a string");
  return std::string(value);
}

double config_fields::real(text::json_field object, std::string_view key) {
  double value = 0.0;
  if (!object[key]) {
    refuse(error_code::corrupt, key, "it is missing");
  } else if (member(object, key).get(value) || !std::isfinite(value)) {
    refuse(error_code::corrupt, key, "it is not a finite number");
  }
  return value;
}

double config_fields::real_or(text::json_field object, std::string_view key, double fallback) {
  return object[key] ? real(object, key) : fallback;
}

}  // namespace tandem::model

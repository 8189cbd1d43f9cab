#include "model/gguf_fields.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tandem::model {
namespace {

bool is_integer(gguf_type type) {
  return type != gguf_type::f32 && type != gguf_type::f64 && type != gguf_type::string && type != gguf_type::array &&
         type != gguf_type::boolean;
}

}  // namespace

void gguf_fields::refuse(error_code code, std::string_view key, std::string_view problem) {
  if (failure_) return;
  const gguf_entry* entry = file_.metadata.find(key);
  const std::string place = entry != nullptr ? fmt::format(" at offset {}", entry->offset) : "";
  failure_ = error{code, fmt::format("{}: metadata \"{}\"{}: {}.", file_.path, key, place, problem), file_.path};
}

const gguf_entry* gguf_fields::need(std::string_view key) {
  if (failure_) return nullptr;
  const gguf_entry* entry = file_.metadata.find(key);
  if (entry == nullptr) refuse(error_code::corrupt, key, "it is missing");
  return entry;
}

std::int64_t gguf_fields::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const gguf_entry* entry = need(key);
  if (entry == nullptr) return least;
  if (!is_integer(entry->value.type)) {
    refuse(error_code::corrupt, key,
           fmt::format("it is of type {}, not an integer", gguf_type_name(entry->value.type)));
    return least;
  }
  const auto [value, fits] = gguf_integer(entry->value.type, entry->value.bytes);
  if (fits && value >= least && value <= most) return value;
  refuse(error_code::corrupt, key, fmt::format("{} is not between {} and {}", gguf_text(entry->value), least, most));
  return least;
}

std::int64_t gguf_fields::integer_or(std::string_view key, std::int64_t least, std::int64_t most,
                                     std::int64_t fallback) {
  return has(key) ? integer(key, least, most) : fallback;
}

double gguf_fields::real(std::string_view key) {
  const gguf_entry* entry = need(key);
  if (entry == nullptr) return 0.0;
  const gguf_type type = entry->value.type;
  if (type != gguf_type::f32 && type != gguf_type::f64 && !is_integer(type)) {
    refuse(error_code::corrupt, key, fmt::format("it is of type {}, not a number", gguf_type_name(type)));
    return 0.0;
  }
  const double value = gguf_real(type, entry->value.bytes);
  if (!std::isfinite(value)) refuse(error_code::corrupt, key, "it is not a finite number");
  return value;
}

double gguf_fields::real_or(std::string_view key, double fallback) {
  return has(key) ? real(key) : fallback;
}

bool gguf_fields::boolean_or(std::string_view key, bool fallback) {
  if (!has(key) || failure_) return fallback;
  const gguf_entry* entry = file_.metadata.find(key);
  if (entry->value.type == gguf_type::boolean) return gguf_integer(gguf_type::boolean, entry->value.bytes).first != 0;
  refuse(error_code::corrupt, key, "it is not a truth value");
  return fallback;
}

std::string gguf_fields::text(std::string_view key) {
  const gguf_entry* entry = need(key);
  if (entry == nullptr) return {};
  if (entry->value.type != gguf_type::string) {
    refuse(error_code::corrupt, key, "it is not a string");
    return {};
  }
  return {reinterpret_cast<const char*>(entry->value.bytes.data()), entry->value.bytes.size()};
}

std::string gguf_fields::text_or(std::string_view key, std::string fallback) {
  return has(key) ? text(key) : fallback;
}

std::vector<std::string_view> gguf_fields::strings(std::string_view key) {
  const gguf_entry* entry = need(key);
  if (entry == nullptr) return {};
  if (entry->value.type != gguf_type::array || entry->value.element_type != gguf_type::string) {
    refuse(error_code::corrupt, key, "it is not an array of strings");
    return {};
  }
  return gguf_strings(entry->value);
}

std::vector<std::int64_t> gguf_fields::integers(std::string_view key) {
  const gguf_entry* entry = need(key);
  if (entry == nullptr) return {};
  const gguf_value& value = entry->value;
  if (value.type != gguf_type::array || !is_integer(value.element_type)) {
    refuse(error_code::corrupt, key, "it is not an array of integers");
    return {};
  }
  std::vector<std::int64_t> numbers;
  numbers.reserve(value.count);
  const std::size_t stride = gguf_type_bytes(value.element_type);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    numbers.push_back(gguf_integer(value.element_type, value.bytes.subspan(i * stride, stride)).first);
  }
  return numbers;
}

}  // namespace tandem::model

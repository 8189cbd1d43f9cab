#include "model/integer_array.hpp"

#include <cstring>

#include "core/assert.hpp"

namespace tandem::model {
namespace {

template <class T>
std::int64_t number_at(std::span<const std::byte> data, std::int64_t index) {
  T value = 0;
  std::memcpy(&value, data.data() + static_cast<std::size_t>(index) * sizeof value, sizeof value);
  return value;
}

}  // namespace

std::int64_t integer_array::at(std::int64_t index) const {
  TANDEM_ASSERT(index >= 0 && index < count);
  if (element_bytes == 8) return number_at<std::int64_t>(data, index);
  return element_bytes == 4 ? number_at<std::int32_t>(data, index) : number_at<std::uint8_t>(data, index);
}

}  // namespace tandem::model

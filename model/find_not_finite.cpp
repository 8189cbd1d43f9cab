#include <array>
#include <cstring>

#include "model/tensor_layout.hpp"

namespace tandem::model {
namespace {

/// Where a kind's floating-point numbers lie: `count` of them from the start of every `stride` bytes.
struct number_places {
  std::size_t stride = 0;
  std::array<std::size_t, 2> offsets{};
  std::size_t count = 1;
};

number_places places_of(tensor_kind kind) {
  const auto stride = static_cast<std::size_t>(traits(kind).block_bytes);
  switch (kind) {
    case tensor_kind::q4_1:
    case tensor_kind::q5_1:
    case tensor_kind::q4_k:
    case tensor_kind::q5_k:
      return {stride, {0, 2}, 2};
    case tensor_kind::q6_k:
      return {stride, {208, 0}, 1};
    default:
      return {stride, {0, 0}, 1};
  }
}

template <class T>
std::optional<std::uint64_t> find_exponent(const tensor& weight, T exponent_mask) {
  const number_places places = places_of(weight.kind);
  for (std::size_t block = 0; block < weight.data.size(); block += places.stride) {
    for (std::size_t i = 0; i < places.count; ++i) {
      T bits = 0;
      std::memcpy(&bits, weight.data.data() + block + places.offsets[i], sizeof bits);
      if ((bits & exponent_mask) == exponent_mask) return weight.file_offset + block + places.offsets[i];
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> find_not_finite(const tensor& weight) {
  // All exponent bits set: infinity or NaN.
  if (weight.kind == tensor_kind::f32) return find_exponent<std::uint32_t>(weight, 0x7F800000U);
  if (weight.kind == tensor_kind::bf16) return find_exponent<std::uint16_t>(weight, 0x7F80U);
  return find_exponent<std::uint16_t>(weight, 0x7C00U);
}

}  // namespace tandem::model

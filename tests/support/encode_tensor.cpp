#include "tests/support/encode_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/assert.hpp"
#include "model/half.hpp"

namespace tandem::test {
namespace {

void put_u16(std::string& out, std::uint16_t value) {
  out.push_back(static_cast<char>(value & 0xFF));
  out.push_back(static_cast<char>(value >> 8));
}

void put_q8_0(std::string& out, std::span<const float> block) {
  float largest = 0.0F;
  for (const float value : block) largest = std::max(largest, std::fabs(value));
  const std::uint16_t scale_bits = to_half(largest / 127.0F);
  const float scale = model::half_to_float(scale_bits);
  put_u16(out, scale_bits);
  for (const float value : block) {
    const float quotient = scale > 0.0F ? std::clamp(std::nearbyint(value / scale), -127.0F, 127.0F) : 0.0F;
    out.push_back(static_cast<char>(static_cast<std::int8_t>(quotient)));
  }
}

void put_q4_0(std::string& out, std::span<const float> block) {
  float extreme = 0.0F;  // the value of largest magnitude, which becomes -8
  for (const float value : block) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  const std::uint16_t scale_bits = to_half(extreme / -8.0F);
  const float scale = model::half_to_float(scale_bits);
  put_u16(out, scale_bits);
  const auto nibble = [&](float value) {
    const float quotient = scale != 0.0F ? std::nearbyint(value / scale) + 8.0F : 8.0F;
    return static_cast<int>(std::clamp(quotient, 0.0F, 15.0F));
  };
  for (std::size_t j = 0; j < 16; ++j) {
    out.push_back(static_cast<char>(nibble(block[j]) | (nibble(block[j + 16]) << 4)));
  }
}

}  // namespace

std::uint16_t to_half(float value) {
  const auto sign = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) >> 16) & 0x8000U);
  const float magnitude = std::fabs(value);
  TANDEM_ASSERT(magnitude <= 65504.0F);
  if (magnitude < 0x1p-14F) {  // subnormal: multiples of 2^-24; nearbyint rounds half to even
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  }
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t rounded = bits + 0xFFFU + ((bits >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - (112U << 23)) >> 13));
}

std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

std::string encode_tensor(std::span<const float> values, model::tensor_kind kind) {
  std::string out;
  switch (kind) {
    case model::tensor_kind::f32:
      out.resize(values.size() * 4);
      std::memcpy(out.data(), values.data(), out.size());
      return out;
    case model::tensor_kind::f16:
      for (const float value : values) put_u16(out, to_half(value));
      return out;
    case model::tensor_kind::bf16:
      for (const float value : values) put_u16(out, to_bfloat16(value));
      return out;
    case model::tensor_kind::q8_0:
    case model::tensor_kind::q4_0:
      TANDEM_ASSERT(values.size() % 32 == 0);
      for (std::size_t begin = 0; begin < values.size(); begin += 32) {
        const auto block = values.subspan(begin, 32);
        kind == model::tensor_kind::q8_0 ? put_q8_0(out, block) : put_q4_0(out, block);
      }
      return out;
    default:
      TANDEM_ASSERT(kind == model::tensor_kind::f32);  // made models have no other kind
      return out;
  }
}

std::uint32_t ggml_number(model::tensor_kind kind) {
  constexpr std::uint32_t kNumbers[] = {0, 1, 30, 2, 3, 6, 7, 8, 12, 13, 14};
  return kNumbers[static_cast<std::size_t>(kind)];
}

}  // namespace tandem::test

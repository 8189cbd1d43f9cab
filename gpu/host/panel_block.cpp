#include "gpu/host/panel_block.hpp"

#include <cstring>

#include "core/assert.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

bool has_super(packed_format format) {
  return format == packed_format::panel_nibble_super_min || format == packed_format::panel_byte_super_min;
}
bool has_minimum(packed_format format) {
  return has_super(format) || format == packed_format::panel_nibble_half_min ||
         format == packed_format::panel_byte_half_min;
}

/// Where a field of a plane begins.
struct field_place {
  std::size_t byte;
  std::size_t bit;
};

field_place nibble_place(std::size_t output, std::size_t k) {
  const auto place = static_cast<std::size_t>(place_in_row(static_cast<std::int32_t>(k)));
  const std::size_t nibble = 4 * (output % 4) + place % 4;
  return {64 * (output / 4) + 8 * (place / 4) + nibble / 2, nibble % 2 * 4};
}

std::size_t byte_place(std::size_t output, std::size_t k) {
  return 64 * (output / 2) + 8 * (k % 16 / 2) + 4 * (output % 2) + 2 * (k / 16) + k % 2;
}

/// Bit `i` of a field of six.
field_place six_place(std::size_t output, std::size_t k, std::size_t i) {
  const std::size_t at = 6 * (4 * (output % 8) + 2 * (k / 16) + k % 2) + i;
  return {192 * (output / 8) + 64 * (at / 64) + 8 * (k % 16 / 2) + at % 64 / 8, at % 8};
}

void put_field(packed_format format, std::size_t output, std::size_t k, unsigned quant, std::byte* plane) {
  if (has_nibble_plane(format)) {
    const field_place at = nibble_place(output, k);
    plane[at.byte] |= static_cast<std::byte>(quant << at.bit);
  } else if (format == packed_format::panel_six_super16) {
    for (std::size_t i = 0; i < 6; ++i) {
      const field_place at = six_place(output, k, i);
      plane[at.byte] |= static_cast<std::byte>((quant >> i & 1U) << at.bit);
    }
  } else {
    plane[byte_place(output, k)] = static_cast<std::byte>(quant);
  }
}

int field_at(packed_format format, std::size_t output, std::size_t k, const std::byte* plane) {
  if (has_nibble_plane(format)) {
    const field_place at = nibble_place(output, k);
    return std::to_integer<int>(plane[at.byte]) >> at.bit & 15;
  }
  if (format != packed_format::panel_six_super16) return std::to_integer<int>(plane[byte_place(output, k)]);
  int value = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const field_place at = six_place(output, k, i);
    value |= (std::to_integer<int>(plane[at.byte]) >> at.bit & 1) << i;
  }
  return value;
}

float half_at(const std::byte* from, std::size_t n) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from + 2 * n, sizeof bits);
  return model::half_to_float(bits);
}

int zero_of(packed_format format) {
  if (format == packed_format::panel_nibble_half) return 8;
  if (format == packed_format::panel_byte_half) return 128;
  return format == packed_format::panel_six_super16 ? 32 : 0;
}

}  // namespace

void put_panel_block(packed_format format, const source_block& block, std::size_t output, std::size_t in_unit,
                     std::byte* header, std::byte* plane) {
  TANDEM_ASSERT(is_panel(format) && format != packed_format::panel_bf16);
  std::memcpy(header + 2 * output, &block.scale, 2);
  if (has_minimum(format)) std::memcpy(header + 64 + 2 * output, &block.minimum, 2);
  if (has_super(format)) {
    header[128 + 64 * in_unit + output] = static_cast<std::byte>(block.sub_scale);
    header[160 + 64 * in_unit + output] = static_cast<std::byte>(block.sub_minimum);
  } else if (format == packed_format::panel_six_super16) {
    std::memcpy(header + 64 + 64 * in_unit + output, &block.half_scale[0], 1);
    std::memcpy(header + 96 + 64 * in_unit + output, &block.half_scale[1], 1);
  }
  for (std::size_t k = 0; k < kBlockInputs; ++k) put_field(format, output, k, block.quants[k], plane);
}

void read_panel_block(packed_format format, const std::byte* header, const std::byte* plane, std::size_t output,
                      std::size_t in_unit, float (&out)[kBlockInputs]) {
  float scales[2] = {half_at(header, output), half_at(header, output)};
  float minimum = has_minimum(format) ? half_at(header + 64, output) : 0.0F;
  if (has_super(format)) {
    scales[0] *= static_cast<float>(std::to_integer<int>(header[128 + 64 * in_unit + output]));
    scales[1] = scales[0];
    minimum *= static_cast<float>(std::to_integer<int>(header[160 + 64 * in_unit + output]));
  } else if (format == packed_format::panel_six_super16) {
    for (std::size_t half = 0; half < 2; ++half) {
      const auto small = std::to_integer<int>(header[64 + 64 * in_unit + 32 * half + output]);
      scales[half] *= static_cast<float>(static_cast<std::int8_t>(small));
    }
  }
  for (std::size_t k = 0; k < kBlockInputs; ++k) {
    const auto quant = static_cast<float>(field_at(format, output, k, plane) - zero_of(format));
    const float product = scales[k / 16] * quant;
    out[k] = has_minimum(format) ? product + minimum : product;
  }
}

}  // namespace tandem::gpu::host

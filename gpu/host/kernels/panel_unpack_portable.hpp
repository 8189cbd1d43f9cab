#pragma once
/// Unpacks panels in plain C++ (panel_numbers.hpp): the reference of panel_unpack_avx512.hpp, with the same bits.

#include <cmath>
#include <cstring>

#include "gpu/host/kernels/panel_numbers.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

struct panel_unpack_portable {
  static float half_at(const std::byte* from, int n) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + 2 * n, sizeof bits);
    return model::half_to_float(bits);
  }
  static float unsigned_at(const std::byte* from, int n) { return static_cast<float>(std::to_integer<int>(from[n])); }
  static float signed_at(const std::byte* from, int n) {
    return static_cast<float>(static_cast<std::int8_t>(std::to_integer<int>(from[n])));
  }

  template <packed_format Format>
  static void numbers(const std::byte* header, std::int64_t in_unit, panel_numbers<has_two_scales(Format)>& out) {
    const std::byte* small = header + 128 + 64 * in_unit;
    for (int n = 0; n < kPanelOutputs; ++n) {
      const float first = half_at(header, n);
      if constexpr (Format == packed_format::panel_six_super16) {
        out.scale[n] = first * signed_at(small - 64, n) * kRoundingFactor;
        out.second_scale[n] = first * signed_at(small - 32, n) * kRoundingFactor;
        out.offset[n] = out.scale[n] * -(kSixBase + 32);
        out.second_offset[n] = out.second_scale[n] * -(kSixBase + 32);
      } else if constexpr (Format == packed_format::panel_nibble_half || Format == packed_format::panel_byte_half) {
        constexpr float kZero = Format == packed_format::panel_nibble_half ? 8 : kByteBase + 128;
        out.scale[n] = first * kRoundingFactor;
        out.offset[n] = out.scale[n] * -kZero;
      } else {
        constexpr bool kSuper =
            Format == packed_format::panel_nibble_super_min || Format == packed_format::panel_byte_super_min;
        const float scale = kSuper ? first * unsigned_at(small, n) : first;
        const float minimum = half_at(header + 64, n) * (kSuper ? unsigned_at(small + 32, n) : 1.0F);
        out.scale[n] = scale * kRoundingFactor;
        out.offset[n] = minimum * kRoundingFactor;
        if constexpr (!has_nibble_plane(Format)) out.offset[n] = std::fma(-kByteBase, out.scale[n], out.offset[n]);
      }
    }
  }

  /// The field of output n and input k, plus its base.
  template <packed_format Format>
  static float field(const std::byte* plane, int n, int k) {
    if constexpr (has_nibble_plane(Format)) {
      const int place = place_in_row(k);
      const int nibble = 4 * (n % 4) + place % 4;
      const int both = std::to_integer<int>(plane[64 * (n / 4) + 8 * (place / 4) + nibble / 2]);
      return static_cast<float>(nibble % 2 == 0 ? both & 15 : both >> 4);
    } else if constexpr (Format == packed_format::panel_six_super16) {
      const int bit = 6 * (4 * (n % 8) + 2 * (k / 16) + k % 2);
      const std::byte* words = plane + 192 * (n / 8) + 8 * (k % 16 / 2);
      int value = 0;
      for (int i = 0; i < 6; ++i) {
        const int at = bit + i;
        value |= (std::to_integer<int>(words[64 * (at / 64) + at % 64 / 8]) >> at % 8 & 1) << i;
      }
      return kSixBase + static_cast<float>(value);
    } else {
      return kByteBase + unsigned_at(plane + 64 * (n / 2) + 8 * (k % 16 / 2), 4 * (n % 2) + 2 * (k / 16) + k % 2);
    }
  }

  /// Outputs [8 · Quarter, 8 · Quarter + 8) of a block to their rows of `out`.
  template <packed_format Format, int Quarter>
  static void unpack_quarter(const std::byte* plane, const panel_numbers<has_two_scales(Format)>& numbers,
                             std::byte* out) {
    for (int n = 8 * Quarter; n < 8 * Quarter + 8; ++n) {
      for (int k = 0; k < kBlockInputs; ++k) {
        float scale = numbers.scale[n];
        float offset = numbers.offset[n];
        if constexpr (has_two_scales(Format)) {
          if (k >= 16) scale = numbers.second_scale[n];
          if (k >= 16) offset = numbers.second_offset[n];
        }
        const float weight = std::fma(field<Format>(plane, n, k), scale, offset);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &weight, sizeof bits);
        const auto cut = static_cast<std::uint16_t>(bits >> 16);
        std::memcpy(out + kPanelRowBytes * static_cast<std::size_t>(n) + 2 * place_in_row(k), &cut, sizeof cut);
      }
    }
  }

  /// tile[n][r] in rows of 16 floats to out[r · stride + n] for n < outputs ≤ 16, r < rows.
  static void write(const float* tile, int rows, int outputs, float* out, std::int64_t stride) {
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < outputs; ++n) out[r * stride + n] = tile[n * 16 + r];
  }
  static void prefetch(const std::byte*) {}
  static void prefetch_to_write(const float*) {}
};

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// What unpacks a panel: per block and output a scale and an offset, and how a weight comes from its field.
///
/// Computes:   weight = (base + field) · scale + offset by one fused multiply-add in fp32, of which the upper 16 bits
///             are kept. That cuts off; so scale and offset are kRoundingFactor times too large, which leaves no bias
///             on average. The root mean square of the error is 7 % above that of rounding to nearest.
/// Shapes:     32 outputs and 32 inputs a block, packed as gpu/host/packed_layout.hpp says, to 32 rows of 32 bf16.
/// Accuracy:   error of a weight below 2^-7 of it, plus 2^-16 of the scale where there is a minimum. Zero stays zero
///             where there is none, but for Q6_K, where it may become 2^-17 of the scale.
/// Tested by:  tests/gpu/kernels/amx_*_test.cpp.
///
/// A field is placed in the bits of a float, where the constant bits above make it base + field (kByteBase, kSixBase);
/// a nibble is looked up instead, in a table of the 16 weights that it can stand for.

#include <cstddef>
#include <cstdint>

#include "gpu/host/packed_layout.hpp"

namespace tandem::gpu::host {
namespace {

inline constexpr float kRoundingFactor = 1.0F + 3 * 0x1p-10F;  // few bits, so that most products with it are exact
inline constexpr float kByteBase = 256.0F;
inline constexpr float kSixBase = 64.0F;
inline constexpr std::size_t kPanelRowBytes = 64;
inline constexpr std::size_t kPanelBlockBytes = kPanelOutputs * kPanelRowBytes;

/// Of one block. The second ones are those of its last 16 inputs, where a format has both.
template <bool TwoScales>
struct panel_numbers {
  alignas(kCacheLine) float scale[kPanelOutputs];
  alignas(kCacheLine) float offset[kPanelOutputs];
};
template <>
struct panel_numbers<true> : panel_numbers<false> {
  alignas(kCacheLine) float second_scale[kPanelOutputs];
  alignas(kCacheLine) float second_offset[kPanelOutputs];
};

constexpr bool has_two_scales(packed_format format) {
  return format == packed_format::panel_six_super16;
}

/// A whole block to 32 rows of `out`.
template <class Unpack, packed_format Format>
void unpack_block(const std::byte* plane, const panel_numbers<has_two_scales(Format)>& numbers, std::byte* out) {
  Unpack::template unpack_quarter<Format, 0>(plane, numbers, out);
  Unpack::template unpack_quarter<Format, 1>(plane, numbers, out);
  Unpack::template unpack_quarter<Format, 2>(plane, numbers, out);
  Unpack::template unpack_quarter<Format, 3>(plane, numbers, out);
}

}  // namespace
}  // namespace tandem::gpu::host

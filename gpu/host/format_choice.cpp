#include "gpu/host/format_choice.hpp"

#include "gpu/host/tile_packer.hpp"

namespace tandem::gpu::host {
namespace {

/// Weights rounded to 8 bits where whole blocks of them make a row; else as the file has them.
packed_format int8_format(const model::tensor& weight) {
  const bool quantised = model::traits(weight.kind).block_elements > 1;
  return quantised || weight.columns % kBlockInputs != 0 ? native_format(weight.kind) : packed_format::byte_half;
}

packed_format plain_format(const model::tensor& weight, packing how) {
  switch (how) {
    case packing::int8:
    case packing::int8_precise:
      return int8_format(weight);
    case packing::native:
    case packing::native_precise:
      return native_format(weight.kind);
    case packing::bf16:
      return packed_format::bf16;
    case packing::fp32:
      break;
  }
  return packed_format::fp32;
}

/// The same weights as a panel.
packed_format panel_of(packed_format format) {
  switch (format) {
    case packed_format::nibble_half:
      return packed_format::panel_nibble_half;
    case packed_format::nibble_half_min:
      return packed_format::panel_nibble_half_min;
    case packed_format::nibble_super_min:
      return packed_format::panel_nibble_super_min;
    case packed_format::byte_half:
      return packed_format::panel_byte_half;
    case packed_format::byte_half_min:
      return packed_format::panel_byte_half_min;
    case packed_format::byte_super_min:
      return packed_format::panel_byte_super_min;
    case packed_format::six_super16:
      return packed_format::panel_six_super16;
    case packed_format::bf16:
      return packed_format::panel_bf16;
    default:
      return format;
  }
}

packed_format wanted_format(const model::tensor& weight, packing how, isa set) {
  const packed_format plain = plain_format(weight, how);
  return set == isa::amx ? panel_of(plain) : plain;
}

}  // namespace

activation_kind common_input(std::span<const model::tensor* const> weights, packing how, isa set) {
  const bool precise = how == packing::native_precise || how == packing::int8_precise;
  auto kind = precise ? activation_kind::int8_pair : activation_kind::int8;
  for (const model::tensor* weight : weights) {
    const activation_kind needs = layout_of(wanted_format(*weight, how, set)).input;
    if (needs == activation_kind::fp32) return needs;
    if (needs == activation_kind::bf16 || needs == activation_kind::bf16_columns) kind = needs;
  }
  return kind;
}

packed_format part_format(const model::tensor& weight, packing how, isa set, activation_kind input) {
  if (input == activation_kind::fp32) return packed_format::fp32;
  if (input == activation_kind::bf16) return packed_format::bf16;
  return wanted_format(weight, how, set);
}

}  // namespace tandem::gpu::host

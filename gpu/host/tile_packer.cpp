#include "gpu/host/tile_packer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/assert.hpp"
#include "gpu/host/bf16.hpp"
#include "gpu/host/panel_block.hpp"
#include "gpu/host/source_block.hpp"
#include "gpu/host/weight_rounding.hpp"
#include "model/half.hpp"

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

/// Where block `index` of a tile lies.
struct block_place {
  std::size_t header;
  std::size_t plane;
  std::int32_t in_unit;
};

block_place place_of(packed_format format, std::int64_t index) {
  const format_layout layout = layout_of(format);
  const auto unit = static_cast<std::size_t>(index / layout.blocks_per_unit);
  const auto in_unit = static_cast<std::int32_t>(index % layout.blocks_per_unit);
  const std::size_t unit_bytes =
      layout.header_bytes + static_cast<std::size_t>(layout.blocks_per_unit) * layout.plane_bytes;
  const std::size_t header = unit * unit_bytes;
  return {header, header + layout.header_bytes + static_cast<std::size_t>(in_unit) * layout.plane_bytes, in_unit};
}

bool has_nibbles(packed_format format) {
  return format == packed_format::nibble_half || format == packed_format::nibble_half_min ||
         format == packed_format::nibble_super_min || format == packed_format::six_super16;
}

void put_byte_plane(const source_block& block, std::size_t lane, std::byte* plane) {
  for (std::size_t j = 0; j < 8; ++j) std::memcpy(plane + 64 * j + 4 * lane, block.quants + 4 * j, 4);
}

/// The low four bits of each value; a six plane keeps the rest elsewhere.
void put_nibble_plane(const source_block& block, std::size_t lane, std::byte* plane) {
  for (std::size_t j = 0; j < 4; ++j) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, block.quants + 4 * j, 4);
    std::memcpy(&high, block.quants + 16 + 4 * j, 4);
    const std::uint32_t both = (low & 0x0F0F0F0FU) | (high & 0x0F0F0F0FU) << 4;
    std::memcpy(plane + 64 * j + 4 * lane, &both, 4);
  }
}

void put_pair_plane(const source_block& block, std::size_t lane, std::byte* plane) {
  for (std::size_t p = 0; p < 2; ++p) {
    std::uint32_t all = 0;
    for (std::size_t s = 0; s < 4; ++s) {
      std::uint32_t quad = 0;
      std::memcpy(&quad, block.quants + 16 * p + 4 * s, 4);
      all |= ((quad >> 4) & 0x03030303U) << (2 * s);
    }
    std::memcpy(plane + 64 * p + 4 * lane, &all, 4);
  }
}

void put_plane(packed_format format, const source_block& block, std::size_t lane, std::byte* plane) {
  if (!has_nibbles(format)) return put_byte_plane(block, lane, plane);
  put_nibble_plane(block, lane, plane);
  if (format == packed_format::six_super16) put_pair_plane(block, lane, plane + 256);
}

void put_header(packed_format format, const source_block& block, std::size_t lane, std::size_t in_unit,
                std::byte* header) {
  const std::size_t half = lane * 2;
  switch (format) {
    case packed_format::nibble_half:
    case packed_format::byte_half:
      std::memcpy(header + 32 * in_unit + half, &block.scale, 2);
      break;
    case packed_format::nibble_half_min:
    case packed_format::byte_half_min:
      std::memcpy(header + half, &block.scale, 2);
      std::memcpy(header + 32 + half, &block.minimum, 2);
      break;
    case packed_format::nibble_super_min:
    case packed_format::byte_super_min:
      std::memcpy(header + half, &block.scale, 2);
      std::memcpy(header + 32 + half, &block.minimum, 2);
      std::memcpy(header + 64 + 32 * in_unit + lane, &block.sub_scale, 1);
      std::memcpy(header + 80 + 32 * in_unit + lane, &block.sub_minimum, 1);
      break;
    case packed_format::six_super16:
      std::memcpy(header + half, &block.scale, 2);
      std::memcpy(header + 64 + 32 * in_unit + lane, &block.half_scale[0], 1);
      std::memcpy(header + 80 + 32 * in_unit + lane, &block.half_scale[1], 1);
      break;
    default:
      TANDEM_ASSERT(false && "this format has no such header");
  }
}

/// The blocks of one row after the other: the file's own, or its numbers rounded to 8 bits.
class row_reader {
 public:
  explicit row_reader(const model::tensor& weight)
      : weight_(weight), rounds_(model::traits(weight.kind).block_elements == 1) {
    if (rounds_) values_.resize(static_cast<std::size_t>(weight.columns));
  }

  void go_to(std::int64_t row) {
    bytes_ = weight_.data.data() + static_cast<std::size_t>(row) * row_bytes(weight_.kind, weight_.columns);
    if (rounds_) model::dequantize_row(weight_, row, values_.data());
  }
  source_block block(std::int64_t index) const {
    return rounds_ ? round_block(values_.data() + index * kBlockInputs) : read_block(weight_.kind, bytes_, index);
  }

  bool rounds() const { return rounds_; }

 private:
  const model::tensor& weight_;
  bool rounds_;
  std::vector<float> values_;  // one row
  const std::byte* bytes_ = nullptr;
};

bool pack_blocks(packed_format format, const model::tensor& weight, std::int64_t first_row, std::int64_t lanes,
                 std::byte* tile) {
  row_reader reader(weight);
  bool scaled = true;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    reader.go_to(first_row + lane);
    for (std::int64_t index = 0; index < weight.columns / kBlockInputs; ++index) {
      const source_block block = reader.block(index);
      scaled = scaled && !(reader.rounds() && std::isnan(model::half_to_float(block.scale)));
      const block_place place = place_of(format, index);
      if (is_panel(format)) {
        put_panel_block(format, block, static_cast<std::size_t>(lane), static_cast<std::size_t>(place.in_unit),
                        tile + place.header, tile + place.plane);
        continue;
      }
      put_header(format, block, static_cast<std::size_t>(lane), static_cast<std::size_t>(place.in_unit),
                 tile + place.header);
      put_plane(format, block, static_cast<std::size_t>(lane), tile + place.plane);
    }
  }
  return scaled;
}

/// Where input k of output `lane` lies in a bf16 panel.
std::size_t panel_float_place(std::size_t lane, std::size_t k) {
  const auto place = static_cast<std::size_t>(place_in_row(static_cast<std::int32_t>(k % kBlockInputs)));
  return k / kBlockInputs * layout_of(packed_format::panel_bf16).plane_bytes + 64 * lane + 2 * place;
}

bool has_blocks(packed_format format) {
  return layout_of(format).header_bytes != 0;
}

void pack_floats(packed_format format, const model::tensor& weight, std::int64_t first_row, std::int64_t lanes,
                 std::byte* tile) {
  const auto columns = static_cast<std::size_t>(weight.columns);
  std::vector<float> values(columns);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    model::dequantize_row(weight, first_row + lane, values.data());
    const auto at = static_cast<std::size_t>(lane);
    for (std::size_t k = 0; k < columns; ++k) {
      if (format == packed_format::fp32) {
        std::memcpy(tile + 64 * k + 4 * at, &values[k], 4);
        continue;
      }
      const std::uint16_t rounded = float_to_bf16(values[k]);
      if (format == packed_format::panel_bf16) {
        std::memcpy(tile + panel_float_place(at, k), &rounded, 2);
        continue;
      }
      std::memcpy(tile + 64 * (k / 2) + 4 * at + 2 * (k % 2), &rounded, 2);
    }
  }
}

std::uint16_t u16_at(const std::byte* at) {
  std::uint16_t value = 0;
  std::memcpy(&value, at, 2);
  return value;
}

float half_at(const std::byte* at) {
  return model::half_to_float(u16_at(at));
}

std::int32_t quant_at(packed_format format, const std::byte* plane, std::size_t lane, std::size_t k) {
  const auto byte = [&](std::size_t at) { return std::to_integer<std::int32_t>(plane[at]); };
  if (!has_nibbles(format)) return byte(64 * (k / 4) + 4 * lane + k % 4);
  const std::int32_t both = byte(64 * (k % 16 / 4) + 4 * lane + k % 4);
  const std::int32_t low = k < 16 ? both & 15 : both >> 4;
  if (format != packed_format::six_super16) return low;
  const std::int32_t pairs = byte(256 + 64 * (k / 16) + 4 * lane + k % 4);
  return low | ((pairs >> (2 * (k % 16 / 4))) & 3) << 4;
}

/// value = scale · (q − zero) + minimum, for the block's first and second 16 inputs.
struct block_numbers {
  float scale[2];
  float minimum;
  std::int32_t zero;
};

block_numbers numbers_at(packed_format format, const std::byte* header, std::size_t lane, std::size_t in_unit) {
  const float first = half_at(header + 2 * lane);
  const std::byte* small = header + 64 + 32 * in_unit + lane;
  switch (format) {
    case packed_format::nibble_half:
    case packed_format::byte_half: {
      const float scale = half_at(header + 32 * in_unit + 2 * lane);
      return {{scale, scale}, 0.0F, format == packed_format::byte_half ? 128 : 8};
    }
    case packed_format::nibble_half_min:
    case packed_format::byte_half_min:
      return {{first, first}, half_at(header + 32 + 2 * lane), 0};
    case packed_format::nibble_super_min:
    case packed_format::byte_super_min: {
      const auto as_unsigned = [](std::byte value) { return static_cast<float>(std::to_integer<std::uint8_t>(value)); };
      const float scale = first * as_unsigned(small[0]);
      return {{scale, scale}, half_at(header + 32 + 2 * lane) * as_unsigned(small[16]), 0};
    }
    case packed_format::six_super16: {
      const auto as_signed = [](std::byte value) { return static_cast<float>(std::to_integer<std::int8_t>(value)); };
      return {{first * as_signed(small[0]), first * as_signed(small[16])}, 0.0F, 32};
    }
    default:
      break;
  }
  TANDEM_ASSERT(false && "this format has no such blocks");
  return {};
}

void unpack_blocks(packed_format format, const std::byte* tile, std::size_t lane, std::int64_t columns, float* out) {
  const bool has_minimum = layout_of(format).header_bytes != 0 && format != packed_format::nibble_half &&
                           format != packed_format::byte_half && format != packed_format::six_super16;
  for (std::int64_t index = 0; index < columns / kBlockInputs; ++index, out += kBlockInputs) {
    const block_place place = place_of(format, index);
    if (is_panel(format)) {
      float block[kBlockInputs];
      read_panel_block(format, tile + place.header, tile + place.plane, lane, static_cast<std::size_t>(place.in_unit),
                       block);
      std::copy_n(block, kBlockInputs, out);
      continue;
    }
    const block_numbers numbers =
        numbers_at(format, tile + place.header, lane, static_cast<std::size_t>(place.in_unit));
    for (std::size_t k = 0; k < kBlockInputs; ++k) {
      const auto quant = static_cast<float>(quant_at(format, tile + place.plane, lane, k) - numbers.zero);
      const float product = numbers.scale[k / 16] * quant;
      out[k] = has_minimum ? product + numbers.minimum : product;
    }
  }
}

}  // namespace

packed_format native_format(tensor_kind kind) {
  switch (kind) {
    case tensor_kind::f32:
      return packed_format::fp32;
    case tensor_kind::f16:
    case tensor_kind::bf16:
      return packed_format::bf16;
    case tensor_kind::q4_0:
      return packed_format::nibble_half;
    case tensor_kind::q4_1:
      return packed_format::nibble_half_min;
    case tensor_kind::q5_0:
    case tensor_kind::q8_0:
      return packed_format::byte_half;
    case tensor_kind::q5_1:
      return packed_format::byte_half_min;
    case tensor_kind::q4_k:
      return packed_format::nibble_super_min;
    case tensor_kind::q5_k:
      return packed_format::byte_super_min;
    case tensor_kind::q6_k:
      return packed_format::six_super16;
  }
  TANDEM_ASSERT(false && "a tensor kind without a packed format");
  return packed_format::fp32;
}

bool pack_tile(packed_format format, const model::tensor& weight, std::int64_t first_row, std::byte* tile) {
  TANDEM_ASSERT(first_row >= 0 && first_row < weight.rows);
  std::memset(tile, 0, tile_bytes(format, weight.columns));
  const bool rounds = model::traits(weight.kind).block_elements == 1;
  TANDEM_ASSERT(!has_blocks(format) || !rounds || format == packed_format::byte_half ||
                format == packed_format::panel_byte_half);
  const std::int64_t lanes = std::min<std::int64_t>(outputs_of(format), weight.rows - first_row);
  if (has_blocks(format)) return pack_blocks(format, weight, first_row, lanes, tile);
  pack_floats(format, weight, first_row, lanes, tile);
  return true;
}

void unpack_row(packed_format format, const std::byte* tile, std::int32_t lane, std::int64_t columns, float* out) {
  TANDEM_ASSERT(lane >= 0 && lane < outputs_of(format));
  const auto at = static_cast<std::size_t>(lane);
  if (has_blocks(format)) return unpack_blocks(format, tile, at, columns, out);
  for (std::size_t k = 0; k < static_cast<std::size_t>(columns); ++k) {
    if (format == packed_format::fp32) {
      std::memcpy(out + k, tile + 64 * k + 4 * at, 4);
    } else if (format == packed_format::panel_bf16) {
      out[k] = model::bfloat16_to_float(u16_at(tile + panel_float_place(at, k)));
    } else {
      out[k] = model::bfloat16_to_float(u16_at(tile + 64 * (k / 2) + 4 * at + 2 * (k % 2)));
    }
  }
}

}  // namespace tandem::gpu::host

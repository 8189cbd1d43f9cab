#pragma once
/// The byte layouts of packed weights, shared by the packer and the kernels.
///
/// A tile is 16 consecutive outputs n of one part, all its inputs k, in the order the kernel streams them.
///
///   int8 kinds: units, each [header][plane of block 0][plane of block 1]…; a block is 32 inputs. The last unit of a
///   row may hold fewer planes, never a smaller header. Every part of a unit starts at a multiple of 64 bytes.
///     header  half       2 blocks: 16 × fp16 scale each
///             half_min   1 block:  16 × fp16 scale, 16 × fp16 minimum
///             super_min  8 blocks: 16 × fp16 d, 16 × fp16 −dmin, then per block 16 × u8 scale, 16 × u8 minimum
///             super16    8 blocks: 16 × fp16 d, 32 bytes unused, then per block 2 × 16 × i8 scale (16 inputs each)
///     plane   byte       8 rows of 64 B: row j, byte 4n+i = q(n, 4j+i)
///             nibble     4 rows of 64 B: row j, byte 4n+i = q(n, 4j+i) | q(n, 16+4j+i) << 4
///             six        nibble, then 2 rows of 64 B: row p, byte 4n+i, bits 2s..2s+1 = q(n, 16p+4s+i) >> 4
///   bf16: per pair of inputs 16 × 2 bf16 (64 B). fp32: per input 16 × fp32 (64 B).
///
/// Formats whose names begin with panel_ are for AMX (docs/decisions/0020): a panel is 32 outputs, again in units, and
/// its blocks are unpacked to bf16 while they stream: one row of 64 B per output, in which input k is at
/// place_in_row(k). Bytes of a line (64 B) are counted in words c of 8.
///     header  half       32 × fp16
///             half_min   32 × fp16 scale, 32 × fp16 minimum
///             super_min  32 × fp16 d, 32 × fp16 −dmin, then per block 32 × u8 scale, 32 × u8 minimum
///             super16    32 × fp16 d, then per block 2 × 32 × i8 scale
///     plane   nibble  line l has outputs 4l..4l+3: nibble 4s+i of word c is output 4l+s, place 4c+i
///             byte    line l has outputs 2l, 2l+1: byte 4s+2h+i of word c is output 2l+s, input 16h+2c+i
///             six     3 lines have outputs 8g..8g+7: their words c are 192 bits, 32 fields of 6; field 4s+2h+i is
///                     output 8g+s, input 16h+2c+i
///             bf16    the rows themselves
///
/// Outputs beyond the part's rows are zero.

#include <cstddef>
#include <cstdint>

#include "gpu/host/packed_matrix.hpp"

namespace tandem::gpu::host {

inline constexpr std::int32_t kTileOutputs = 16;
inline constexpr std::int32_t kPanelOutputs = 32;
inline constexpr std::int32_t kBlockInputs = 32;
inline constexpr std::size_t kCacheLine = 64;

enum class packed_format : std::uint8_t {
  nibble_half,       ///< Q4_0, value (q − 8)·scale
  nibble_half_min,   ///< Q4_1, value q·scale + minimum
  nibble_super_min,  ///< Q4_K
  byte_half,         ///< Q8_0, Q5_0: value (q − 128)·scale
  byte_half_min,     ///< Q5_1
  byte_super_min,    ///< Q5_K
  six_super16,       ///< Q6_K: value (q − 32)·scale
  bf16,
  fp32,
  panel_nibble_half,
  panel_nibble_half_min,
  panel_nibble_super_min,
  panel_byte_half,
  panel_byte_half_min,
  panel_byte_super_min,
  panel_six_super16,
  panel_bf16,
};
inline constexpr std::size_t kPackedFormats = 17;

constexpr bool is_panel(packed_format format) {
  return format >= packed_format::panel_nibble_half;
}
/// Of a panel: four bits a weight and nothing else.
constexpr bool has_nibble_plane(packed_format format) {
  return format == packed_format::panel_nibble_half || format == packed_format::panel_nibble_half_min ||
         format == packed_format::panel_nibble_super_min;
}
/// The outputs that are packed and computed together.
constexpr std::int32_t outputs_of(packed_format format) {
  return is_panel(format) ? kPanelOutputs : kTileOutputs;
}
/// Where input k of a block is in an unpacked row of a panel: the halves of a block alternate, because two vectors of
/// 16 floats become one of 32 bf16 that way.
constexpr std::int32_t place_in_row(std::int32_t k) {
  return k % 16 * 2 + k / 16;
}

/// Sizes in bytes. For bf16 and fp32 a "block" is one 64-byte row of a tile.
struct format_layout {
  std::size_t header_bytes;
  std::size_t plane_bytes;
  std::int32_t blocks_per_unit;
  std::int32_t inputs_per_block;
  activation_kind input;
};

constexpr format_layout layout_of(packed_format format) {
  switch (format) {
    case packed_format::nibble_half:
      return {64, 256, 2, kBlockInputs, activation_kind::int8};
    case packed_format::nibble_half_min:
      return {64, 256, 1, kBlockInputs, activation_kind::int8};
    case packed_format::nibble_super_min:
      return {320, 256, 8, kBlockInputs, activation_kind::int8};
    case packed_format::byte_half:
      return {64, 512, 2, kBlockInputs, activation_kind::int8};
    case packed_format::byte_half_min:
      return {64, 512, 1, kBlockInputs, activation_kind::int8};
    case packed_format::byte_super_min:
      return {320, 512, 8, kBlockInputs, activation_kind::int8};
    case packed_format::six_super16:
      return {320, 384, 8, kBlockInputs, activation_kind::int8};
    case packed_format::panel_nibble_half:
      return {64, 512, 1, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::panel_nibble_half_min:
      return {128, 512, 1, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::panel_nibble_super_min:
      return {640, 512, 8, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::panel_byte_half:
      return {64, 1024, 1, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::panel_byte_half_min:
      return {128, 1024, 1, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::panel_byte_super_min:
      return {640, 1024, 8, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::panel_six_super16:
      return {576, 768, 8, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::panel_bf16:
      return {0, 2048, 1, kBlockInputs, activation_kind::bf16_columns};
    case packed_format::bf16:
      return {0, 64, 1, 2, activation_kind::bf16};
    case packed_format::fp32:
      break;
  }
  return {0, 64, 1, 1, activation_kind::fp32};
}

/// Blocks of one row of `columns` inputs, the last one padded.
constexpr std::int64_t blocks_of(packed_format format, std::int64_t columns) {
  const std::int64_t inputs = layout_of(format).inputs_per_block;
  return (columns + inputs - 1) / inputs;
}

constexpr std::size_t tile_bytes(packed_format format, std::int64_t columns) {
  const format_layout layout = layout_of(format);
  const auto blocks = static_cast<std::size_t>(blocks_of(format, columns));
  const auto per_unit = static_cast<std::size_t>(layout.blocks_per_unit);
  return (blocks + per_unit - 1) / per_unit * layout.header_bytes + blocks * layout.plane_bytes;
}

/// 32 inputs of one row as int8, x ≈ scale · quants. A row that holds a NaN or infinity in a block has scale NaN there.
struct activation_block {
  std::int8_t quants[kBlockInputs];
  float scale;
  float scaled_sum;           ///< scale · Σ quants
  std::int32_t negative_sum;  ///< −Σ quants: with a zero point z the dot starts at z · negative_sum
  std::int32_t negative_low;  ///< −Σ of the first 16
};
static_assert(sizeof(activation_block) == 48);

/// A row in two terms: the blocks of the first, the blocks of the second, then one bit per block (bit b % 64 of word
/// b / 64) that says where the second term is kept; elsewhere it is zero. docs/decisions/0011.
constexpr std::int64_t second_term_words(std::int64_t blocks) {
  return (blocks + 63) / 64;
}
constexpr std::size_t pair_row_bytes(std::int64_t blocks) {
  return static_cast<std::size_t>(2 * blocks) * sizeof(activation_block) +
         static_cast<std::size_t>(second_term_words(blocks)) * sizeof(std::uint64_t);
}

/// Rows of bf16_columns are kept in groups of up to 16, so that a group is read as tiles: [group][block][16][row of the
/// group][2] bf16, the two being inputs j and 16 + j of the block.
inline constexpr std::int32_t kColumnRows = 16;

}  // namespace tandem::gpu::host

#include "gpu/host/source_block.hpp"

#include <cstring>

#include "core/assert.hpp"

namespace tandem::gpu::host {
namespace {

using model::tensor_kind;

const std::uint8_t* block_at(const std::byte* row, std::int64_t index, std::size_t bytes) {
  return reinterpret_cast<const std::uint8_t*>(row) + static_cast<std::size_t>(index) * bytes;
}

std::uint16_t read_u16(const std::uint8_t* at) {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint8_t nibble(std::uint8_t byte, bool high) {
  return static_cast<std::uint8_t>(high ? byte >> 4 : byte & 15);
}

/// Value j is the low half of byte j for j < 16, else the high half of byte j − 16.
void read_nibbles(const std::uint8_t* packed, source_block& out) {
  for (int j = 0; j < 16; ++j) {
    out.quants[j] = nibble(packed[j], false);
    out.quants[j + 16] = nibble(packed[j], true);
  }
}

/// Bit j of the four bytes at `bits` is bit 4 of value j.
void add_fifth_bits(const std::uint8_t* bits, source_block& out) {
  std::uint32_t all = 0;
  std::memcpy(&all, bits, sizeof all);
  for (int j = 0; j < 32; ++j) out.quants[j] = static_cast<std::uint8_t>(out.quants[j] | ((all >> j) & 1U) << 4);
}

void read_q4_0(const std::byte* row, std::int64_t index, source_block& out) {
  const std::uint8_t* at = block_at(row, index, 18);
  out.scale = read_u16(at);
  read_nibbles(at + 2, out);
}

void read_q4_1(const std::byte* row, std::int64_t index, source_block& out) {
  const std::uint8_t* at = block_at(row, index, 20);
  out.scale = read_u16(at);
  out.minimum = read_u16(at + 2);
  read_nibbles(at + 4, out);
}

void read_q5_0(const std::byte* row, std::int64_t index, source_block& out) {
  const std::uint8_t* at = block_at(row, index, 22);
  out.scale = read_u16(at);
  read_nibbles(at + 6, out);
  add_fifth_bits(at + 2, out);
  for (std::uint8_t& quant : out.quants) quant = static_cast<std::uint8_t>(quant + 112);  // zero point 16 → 128
}

void read_q5_1(const std::byte* row, std::int64_t index, source_block& out) {
  const std::uint8_t* at = block_at(row, index, 24);
  out.scale = read_u16(at);
  out.minimum = read_u16(at + 2);
  read_nibbles(at + 8, out);
  add_fifth_bits(at + 4, out);
}

void read_q8_0(const std::byte* row, std::int64_t index, source_block& out) {
  const std::uint8_t* at = block_at(row, index, 34);
  out.scale = read_u16(at);
  for (int j = 0; j < 32; ++j) out.quants[j] = static_cast<std::uint8_t>(at[2 + j] ^ 0x80U);
}

/// The 6-bit scale and minimum of sub-block `sub`, spread over 12 bytes.
void read_sub_scales(const std::uint8_t* packed, int sub, source_block& out) {
  if (sub < 4) {
    out.sub_scale = packed[sub] & 63;
    out.sub_minimum = packed[sub + 4] & 63;
    return;
  }
  out.sub_scale = static_cast<std::uint8_t>((packed[sub + 4] & 15) | (packed[sub - 4] >> 6) << 4);
  out.sub_minimum = static_cast<std::uint8_t>((packed[sub + 4] >> 4) | (packed[sub] >> 6) << 4);
}

/// Q4_K and Q5_K: d, dmin, 12 bytes of scales, (32 bytes of fifth bits), 128 bytes of nibbles.
void read_k_block(const std::byte* row, std::int64_t index, bool fifth, source_block& out) {
  const std::uint8_t* at = block_at(row, index / 8, fifth ? 176 : 144);
  const int sub = static_cast<int>(index % 8);
  out.scale = read_u16(at);
  out.minimum = static_cast<std::uint16_t>(read_u16(at + 2) ^ 0x8000U);
  read_sub_scales(at + 4, sub, out);
  const std::uint8_t* low = at + (fifth ? 48 : 16) + 32 * (sub / 2);
  for (int j = 0; j < 32; ++j) out.quants[j] = nibble(low[j], sub % 2 != 0);
  if (!fifth) return;
  for (int j = 0; j < 32; ++j) {
    out.quants[j] = static_cast<std::uint8_t>(out.quants[j] | ((at[16 + j] >> sub) & 1) << 4);
  }
}

/// 128 bytes of nibbles, 64 of upper bit pairs, 16 int8 scales, d. Each half of 128 values interleaves four runs of 32.
void read_q6_k(const std::byte* row, std::int64_t index, source_block& out) {
  const std::uint8_t* at = block_at(row, index / 8, 210);
  const int half = static_cast<int>(index % 8) / 4;
  const int run = static_cast<int>(index % 4);
  const std::uint8_t* low = at + 64 * half + 32 * (run % 2);
  const std::uint8_t* high = at + 128 + 32 * half;
  for (int j = 0; j < 32; ++j) {
    out.quants[j] = static_cast<std::uint8_t>(nibble(low[j], run >= 2) | ((high[j] >> (2 * run)) & 3) << 4);
  }
  std::memcpy(out.half_scale, at + 192 + 8 * half + 2 * run, 2);
  out.scale = read_u16(at + 208);
}

}  // namespace

source_block read_block(tensor_kind kind, const std::byte* row, std::int64_t index) {
  source_block out{};
  switch (kind) {
    case tensor_kind::q4_0:
      read_q4_0(row, index, out);
      break;
    case tensor_kind::q4_1:
      read_q4_1(row, index, out);
      break;
    case tensor_kind::q5_0:
      read_q5_0(row, index, out);
      break;
    case tensor_kind::q5_1:
      read_q5_1(row, index, out);
      break;
    case tensor_kind::q8_0:
      read_q8_0(row, index, out);
      break;
    case tensor_kind::q4_k:
      read_k_block(row, index, false, out);
      break;
    case tensor_kind::q5_k:
      read_k_block(row, index, true, out);
      break;
    case tensor_kind::q6_k:
      read_q6_k(row, index, out);
      break;
    case tensor_kind::f32:
    case tensor_kind::f16:
    case tensor_kind::bf16:
      TANDEM_ASSERT(false && "read_block of a kind that has no blocks");
  }
  return out;
}

std::size_t row_bytes(tensor_kind kind, std::int64_t columns) {
  const model::kind_traits& size = model::traits(kind);
  TANDEM_ASSERT(columns % size.block_elements == 0);
  return static_cast<std::size_t>(columns / size.block_elements * size.block_bytes);
}

}  // namespace tandem::gpu::host

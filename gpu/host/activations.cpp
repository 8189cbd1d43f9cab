#include "gpu/host/activations.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/assert.hpp"
#include "gpu/host/kernels/kernel_table.hpp"
#include "gpu/host/packed_layout.hpp"
#include "gpu/host/row_ops.hpp"

namespace tandem::gpu::host {
namespace {

std::size_t row_stride(activation_kind kind, std::int32_t columns) {
  const auto count = static_cast<std::size_t>(columns);
  switch (kind) {
    case activation_kind::int8:
      return (count / kBlockInputs | 1) * sizeof(activation_block);
    case activation_kind::int8_pair:
      return ((pair_row_bytes(columns / kBlockInputs) + sizeof(activation_block) - 1) / sizeof(activation_block) | 1) *
             sizeof(activation_block);
    case activation_kind::bf16:
      return (count * 2 + kCacheLine - 1) / kCacheLine * kCacheLine | kCacheLine;
    case activation_kind::bf16_columns:
      return (count + kBlockInputs - 1) / kBlockInputs * kBlockInputs * sizeof(std::uint16_t) * kColumnRows;
    case activation_kind::fp32:
      break;
  }
  return (count * 4 + kCacheLine - 1) / kCacheLine * kCacheLine | kCacheLine;
}

}  // namespace

activations::activations(activation_kind kind, std::int32_t max_rows, std::int32_t columns) {
  TANDEM_ASSERT(max_rows > 0 && columns > 0);
  const bool in_blocks = kind == activation_kind::int8 || kind == activation_kind::int8_pair;
  TANDEM_ASSERT(!in_blocks || columns % kBlockInputs == 0);
  impl_ = std::make_unique<impl>();
  impl_->kind = kind;
  impl_->max_rows = max_rows;
  impl_->columns = columns;
  impl_->stride = row_stride(kind, columns);
  const bool in_groups = kind == activation_kind::bf16_columns;
  const std::int32_t groups = in_groups ? (max_rows + kColumnRows - 1) / kColumnRows : max_rows;
  impl_->bytes = allocate_aligned(impl_->stride * static_cast<std::size_t>(groups));
  if (!impl_->bytes) throw std::bad_alloc();
  if (!in_groups) return;
  impl_->pairs_stride = impl_->stride / (sizeof(std::uint32_t) * kColumnRows) | 16;  // odd in cache lines
  impl_->pairs =
      allocate_aligned(impl_->pairs_stride * sizeof(std::uint32_t) * static_cast<std::size_t>(groups * kColumnRows));
  if (!impl_->pairs) throw std::bad_alloc();
  impl_->missing = std::make_unique<std::atomic<std::int32_t>[]>(static_cast<std::size_t>(groups));
  expect(max_rows);
}

std::int32_t activations::impl::rows_of(std::int32_t group) const {
  return std::min(rows_per_group, expected_rows - group * rows_per_group);
}

std::uint32_t* activations::impl::pairs_of(std::int32_t row) {
  return reinterpret_cast<std::uint32_t*>(pairs.get()) + static_cast<std::size_t>(row) * pairs_stride;
}

void activations::impl::finish(std::int32_t group, const kernel_table& kernels) {
  std::atomic<std::int32_t>& left = missing[static_cast<std::size_t>(group)];
  if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  left.store(rows_of(group), std::memory_order_relaxed);  // for the next time
  auto* to = reinterpret_cast<std::uint32_t*>(bytes.get() + static_cast<std::size_t>(group) * stride);
  const std::int64_t blocks = (columns + kBlockInputs - 1) / kBlockInputs;
  // A group that is not full keeps the distances of one that is: its last rows are whatever was there.
  kernels.interleave(pairs_of(group * rows_per_group), static_cast<std::int64_t>(pairs_stride), rows_per_group, blocks,
                     to);
}

activations::~activations() = default;
activations::activations(activations&&) noexcept = default;

activation_kind activations::kind() const {
  return impl_->kind;
}
std::int32_t activations::columns() const {
  return impl_->columns;
}

void activations::expect(std::int32_t rows) {
  TANDEM_ASSERT(rows >= 0 && rows <= impl_->max_rows);
  if (impl_->kind != activation_kind::bf16_columns) return;
  impl_->expected_rows = rows;
  impl_->rows_per_group = std::clamp(rows, 1, kColumnRows);
  for (std::int32_t group = 0; group * impl_->rows_per_group < rows; ++group)
    impl_->missing[static_cast<std::size_t>(group)].store(impl_->rows_of(group), std::memory_order_relaxed);
}

void activations::take_gated(const row_ops& ops, const panel_sums& gate, const panel_sums& up, std::int32_t row,
                             std::int32_t rows, std::int32_t panel) {
  const std::int32_t per_group = impl_->rows_per_group;
  TANDEM_ASSERT(impl_->kind == activation_kind::bf16_columns && row % per_group == 0);
  TANDEM_ASSERT(row + rows <= impl_->expected_rows && (panel + 1) * kBlockInputs <= impl_->columns);
  for (std::int32_t group = 0; group * per_group < rows; ++group) {
    std::byte* to = impl_->bytes.get() + static_cast<std::size_t>(row / per_group + group) * impl_->stride;
    const auto block = static_cast<std::size_t>(panel) * kBlockInputs / 2 * static_cast<std::size_t>(per_group);
    ops.gate_sums(gate.group[group], up.group[group], per_group == 1 ? 1 : kColumnRows, per_group,
                  reinterpret_cast<std::uint32_t*>(to) + block);
  }
}

void activations::convert_to_columns(const kernel_table& kernels, const float* from, std::int32_t row) {
  if (impl_->rows_per_group == 1)
    return kernels.round_row_pairs(from, impl_->columns, reinterpret_cast<std::uint32_t*>(impl_->bytes.get()));
  kernels.round_row_pairs(from, impl_->columns, impl_->pairs_of(row));
  impl_->finish(row / impl_->rows_per_group, kernels);
}

void activations::convert(isa set, const float* input, std::int32_t begin, std::int32_t end) {
  TANDEM_ASSERT(begin >= 0 && begin <= end && end <= impl_->max_rows);
  TANDEM_ASSERT(impl_->kind != activation_kind::bf16_columns || end <= impl_->expected_rows);
  const kernel_table& kernels = kernels_for(set);
  const auto columns = static_cast<std::size_t>(impl_->columns);
  for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end); ++row) {
    const float* from = input + row * columns;
    std::byte* to = impl_->bytes.get() + row * impl_->stride;
    switch (impl_->kind) {
      case activation_kind::int8:
        kernels.quantize_row(from, impl_->columns, reinterpret_cast<activation_block*>(to));
        break;
      case activation_kind::int8_pair:
        kernels.quantize_row_pair(from, impl_->columns, reinterpret_cast<activation_block*>(to));
        break;
      case activation_kind::bf16:
        kernels.round_row(from, impl_->columns, reinterpret_cast<std::uint16_t*>(to));
        break;
      case activation_kind::bf16_columns:
        convert_to_columns(kernels, from, static_cast<std::int32_t>(row));
        break;
      case activation_kind::fp32:
        std::memcpy(to, from, columns * sizeof(float));
        break;
    }
  }
}

}  // namespace tandem::gpu::host

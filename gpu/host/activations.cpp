#include "gpu/host/activations.hpp"

#include <cstring>
#include <new>

#include "core/assert.hpp"
#include "gpu/host/kernels/kernel_table.hpp"
#include "gpu/host/packed_layout.hpp"

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
  const std::size_t stride = row_stride(kind, columns);
  aligned_bytes bytes = allocate_aligned(stride * static_cast<std::size_t>(max_rows));
  if (!bytes) throw std::bad_alloc();
  impl_ = std::make_unique<impl>(impl{kind, max_rows, columns, stride, std::move(bytes)});
}
activations::~activations() = default;
activations::activations(activations&&) noexcept = default;

activation_kind activations::kind() const {
  return impl_->kind;
}
std::int32_t activations::columns() const {
  return impl_->columns;
}

void activations::convert(isa set, const float* input, std::int32_t begin, std::int32_t end) {
  TANDEM_ASSERT(begin >= 0 && begin <= end && end <= impl_->max_rows);
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
      case activation_kind::fp32:
        std::memcpy(to, from, columns * sizeof(float));
        break;
    }
  }
}

}  // namespace tandem::gpu::host

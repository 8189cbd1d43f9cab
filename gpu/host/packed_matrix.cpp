#include "gpu/host/packed_matrix.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "gpu/host/activations.hpp"
#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/kernels/kernel_table.hpp"
#include "gpu/host/packed_layout.hpp"
#include "gpu/host/source_block.hpp"
#include "gpu/host/tile_packer.hpp"

namespace tandem::gpu::host {
namespace {

/// The rows of one source tensor, all in one format.
struct matrix_part {
  packed_format format = packed_format::fp32;
  std::int64_t rows = 0;
  std::int64_t first_output = 0;
  std::int32_t first_tile = 0;
  std::int32_t tiles = 0;
  std::size_t tile_bytes = 0;
  std::size_t offset = 0;  ///< of its first tile
};

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

/// One input form for all parts: the most precise one any of them needs.
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

result<void> check(std::span<const model::tensor* const> weights) {
  if (weights.empty()) return fail(error_code::unsupported, "A matrix needs at least one weight tensor.");
  for (const model::tensor* weight : weights) {
    const bool fits =
        weight->rows > 0 && weight->columns > 0 && weight->columns <= limits::kMaxMatrixColumns &&
        weight->columns == weights[0]->columns && weight->columns % model::traits(weight->kind).block_elements == 0 &&
        weight->data.size() == static_cast<std::size_t>(weight->rows) * row_bytes(weight->kind, weight->columns);
    if (fits) continue;
    return fail(error_code::unsupported,
                "Tensor '" + weight->name + "' in " + weight->file + " (" + std::to_string(weight->rows) + " x " +
                    std::to_string(weight->columns) +
                    ") does not have the size its kind and neighbours ask for; convert the model again.",
                weight->file);
  }
  return {};
}

/// Rows whose activations (about half of the level-2 cache; with AMX it has 2 MiB) stay close while the tiles stream
/// past.
std::int32_t rows_per_pass(const activations::impl& x) {
  const bool in_columns = x.kind == activation_kind::bf16_columns;
  const std::size_t near_bytes = in_columns ? 1024U << 10 : 512U << 10;
  const std::int32_t group = in_columns ? 2 * kColumnRows : 8;
  // Fewer would unpack the same panels too often.
  const std::int32_t least = in_columns ? 4 * kColumnRows : group;
  const std::size_t row_bytes = x.stride / static_cast<std::size_t>(in_columns ? kColumnRows : 1);
  const auto rows = static_cast<std::int32_t>(near_bytes / row_bytes) / group * group;
  return std::clamp(rows, least, kMaxPanelRows);
}

}  // namespace

struct packed_matrix::impl {
  std::vector<matrix_part> parts;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int32_t tiles = 0;
  std::size_t bytes = 0;
  activation_kind input = activation_kind::fp32;
  const kernel_table* kernels = nullptr;
  weight_bytes memory;

  void add(const model::tensor& weight, packing how, isa set) {
    matrix_part part;
    part.format = part_format(weight, how, set, input);
    part.rows = weight.rows;
    part.first_output = rows;
    part.first_tile = tiles;
    const std::int32_t outputs = outputs_of(part.format);
    part.tiles = static_cast<std::int32_t>((weight.rows + outputs - 1) / outputs);
    part.tile_bytes = tile_bytes(part.format, columns);
    part.offset = bytes;
    rows += part.rows;
    tiles += part.tiles;
    bytes += part.tile_bytes * static_cast<std::size_t>(part.tiles);
    parts.push_back(part);
  }

  const matrix_part& part_of_tile(std::int32_t tile) const {
    const auto after = std::upper_bound(parts.begin(), parts.end(), tile,
                                        [](std::int32_t t, const matrix_part& part) { return t < part.first_tile; });
    return *(after - 1);
  }

  std::byte* tile_at(const matrix_part& part, std::int32_t tile) const {
    return memory.get() + part.offset + part.tile_bytes * static_cast<std::size_t>(tile - part.first_tile);
  }

  void multiply_tile(const activations::impl& x, std::int32_t row, std::int32_t rows_now, std::int32_t tile, float* out,
                     std::int64_t out_stride) const {
    const matrix_part& part = part_of_tile(tile);
    const std::int32_t outputs = outputs_of(part.format);
    const std::int64_t local = std::int64_t{tile - part.first_tile} * outputs;
    matmul_task task;
    task.tile = tile_at(part, tile);
    task.blocks = blocks_of(part.format, columns);
    task.terms = x.kind == activation_kind::int8_pair ? 2 : 1;
    task.input = x.group_of(row);
    task.input_stride = x.stride;
    task.rows = rows_now;
    task.out = out + row * out_stride + part.first_output + local;
    task.out_stride = out_stride;
    task.outputs = static_cast<std::int32_t>(std::min<std::int64_t>(outputs, part.rows - local));
    task.rows_per_group = x.rows_per_group;
    kernels->matmul[static_cast<std::size_t>(part.format)](task);
  }
};

packed_matrix::packed_matrix() = default;
packed_matrix::~packed_matrix() = default;
packed_matrix::packed_matrix(packed_matrix&&) noexcept = default;
packed_matrix& packed_matrix::operator=(packed_matrix&&) noexcept = default;

result<packed_matrix> packed_matrix::pack(std::span<const model::tensor* const> weights, packing how, isa set,
                                          const parallel_for& parallel) {
  if (const auto checked = check(weights); !checked) return tl::unexpected<error>(checked.error());
  packed_matrix matrix;
  matrix.impl_ = std::make_unique<impl>();
  impl& self = *matrix.impl_;
  self.columns = weights[0]->columns;
  self.input = common_input(weights, how, set);
  self.kernels = &kernels_for(set);
  for (const model::tensor* weight : weights) self.add(*weight, how, set);
  self.memory = allocate_weights(self.bytes);
  if (!self.memory) {
    return fail(error_code::io, "No memory for tensor '" + weights[0]->name + "': packing it needs " +
                                    std::to_string((self.bytes >> 20) + 1) +
                                    " MiB; free memory or use a smaller model.");
  }
  std::atomic<bool> complete{true};
  std::atomic<const model::tensor*> unscaled{nullptr};
  parallel(self.tiles, [&](std::int64_t begin, std::int64_t end) {
    try {
      for (auto tile = static_cast<std::int32_t>(begin); tile < static_cast<std::int32_t>(end); ++tile) {
        const matrix_part& part = self.part_of_tile(tile);
        const auto source = static_cast<std::size_t>(&part - self.parts.data());
        const std::int64_t first_row = std::int64_t{tile - part.first_tile} * outputs_of(part.format);
        if (!pack_tile(part.format, *weights[source], first_row, self.tile_at(part, tile))) unscaled = weights[source];
      }
    } catch (const std::bad_alloc&) {
      complete = false;
    }
  });
  if (!complete) return fail(error_code::io, "No memory while packing tensor '" + weights[0]->name + "'; free memory.");
  if (const model::tensor* weight = unscaled)
    return fail(error_code::unsupported,
                "Tensor '" + weight->name +
                    "' has weights too large to be rounded to 8 bits (above 8.3 million); run "
                    "without --quantization int8.",
                weight->file);
  return matrix;
}

std::int64_t packed_matrix::rows() const {
  return impl_ ? impl_->rows : 0;
}
std::int64_t packed_matrix::columns() const {
  return impl_ ? impl_->columns : 0;
}
std::size_t packed_matrix::bytes() const {
  return impl_ ? impl_->bytes : 0;
}
activation_kind packed_matrix::wants() const {
  return impl_ ? impl_->input : activation_kind::fp32;
}
std::int32_t packed_matrix::tiles() const {
  return impl_ ? impl_->tiles : 0;
}

void packed_matrix::multiply(const activations& x, std::int32_t m, std::int32_t tile_begin, std::int32_t tile_end,
                             float* out, std::int64_t out_stride) const {
  TANDEM_ASSERT(impl_ != nullptr);
  const activations::impl& input = x.data();
  TANDEM_ASSERT(input.kind == impl_->input && input.columns == impl_->columns);
  TANDEM_ASSERT(m >= 1 && m <= input.max_rows);
  TANDEM_ASSERT(tile_begin >= 0 && tile_begin <= tile_end && tile_end <= impl_->tiles);
  TANDEM_ASSERT(input.kind != activation_kind::bf16_columns || m <= input.expected_rows);
  const std::int32_t pass = rows_per_pass(input);
  for (std::int32_t row = 0; row < m; row += pass) {
    const std::int32_t rows_now = std::min(pass, m - row);
    for (std::int32_t tile = tile_begin; tile < tile_end; ++tile) {
      impl_->multiply_tile(input, row, rows_now, tile, out, out_stride);
    }
  }
  if (impl_->kernels->release != nullptr) impl_->kernels->release();
}

void packed_matrix::row(std::int64_t index, float* out) const {
  TANDEM_ASSERT(impl_ != nullptr && index >= 0 && index < impl_->rows);
  for (const matrix_part& part : impl_->parts) {
    const std::int64_t local = index - part.first_output;
    if (local >= part.rows) continue;
    const auto tile = part.first_tile + static_cast<std::int32_t>(local / outputs_of(part.format));
    const auto lane = static_cast<std::int32_t>(local % outputs_of(part.format));
    return unpack_row(part.format, impl_->tile_at(part, tile), lane, impl_->columns, out);
  }
}

}  // namespace tandem::gpu::host

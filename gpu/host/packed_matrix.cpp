#include "gpu/host/packed_matrix.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "gpu/host/activations.hpp"
#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/format_choice.hpp"
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

  /// Counted within the part.
  static std::int64_t first_output_of(const matrix_part& part, std::int32_t tile) {
    return std::int64_t{tile - part.first_tile} * outputs_of(part.format);
  }

  std::byte* tile_at(const matrix_part& part, std::int32_t tile) const {
    return memory.get() + part.offset + part.tile_bytes * static_cast<std::size_t>(tile - part.first_tile);
  }

  /// `rows_now` rows from `row` on times one tile; where the results go is left to the caller.
  matmul_task task_of(const activations::impl& x, std::int32_t row, std::int32_t rows_now, const matrix_part& part,
                      std::int32_t tile) const {
    const std::int64_t first = first_output_of(part, tile);
    matmul_task task{};
    task.tile = tile_at(part, tile);
    task.blocks = blocks_of(part.format, columns);
    task.terms = x.kind == activation_kind::int8_pair ? 2 : 1;
    task.input = x.group_of(row);
    task.input_stride = x.stride;
    task.rows = rows_now;
    task.outputs = static_cast<std::int32_t>(std::min<std::int64_t>(outputs_of(part.format), part.rows - first));
    task.rows_per_group = x.rows_per_group;
    return task;
  }

  void multiply_tile(const activations::impl& x, std::int32_t row, std::int32_t rows_now, std::int32_t tile, float* out,
                     std::int64_t out_stride) const {
    const matrix_part& part = part_of_tile(tile);
    matmul_task task = task_of(x, row, rows_now, part, tile);
    task.out = out + row * out_stride + part.first_output + first_output_of(part, tile);
    task.out_stride = out_stride;
    kernels->matmul[static_cast<std::size_t>(part.format)](task);
  }

  void leave_sums(const activations::impl& x, std::int32_t row, std::int32_t rows_now, std::int32_t tile,
                  panel_sums& sums) const {
    const matrix_part& part = part_of_tile(tile);
    matmul_task task = task_of(x, row, rows_now, part, tile);
    task.sums = &sums;
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
        if (!pack_tile(part.format, *weights[source], impl::first_output_of(part, tile), self.tile_at(part, tile)))
          unscaled = weights[source];
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

bool packed_matrix::can_gate() const {
  return impl_ && impl_->tiles % 2 == 0 &&
         std::all_of(impl_->parts.begin(), impl_->parts.end(),
                     [](const matrix_part& part) { return is_panel(part.format) && part.rows % kPanelOutputs == 0; });
}

void packed_matrix::multiply_gated(const activations& x, std::int32_t m, std::int32_t panel_begin,
                                   std::int32_t panel_end, const row_ops& ops, activations& out) const {
  TANDEM_ASSERT(can_gate());
  const activations::impl& input = x.data();
  const std::int32_t panels = impl_->tiles / 2;
  TANDEM_ASSERT(&x != &out && input.kind == impl_->input && input.columns == impl_->columns);
  TANDEM_ASSERT(m >= 1 && m == input.expected_rows && m == out.data().expected_rows);  // both in the same groups
  TANDEM_ASSERT(panel_begin >= 0 && panel_begin <= panel_end && panel_end <= panels);
  TANDEM_ASSERT(out.kind() == activation_kind::bf16_columns && out.columns() == impl_->rows / 2);
  const std::int32_t pass = rows_per_pass(input);
  panel_sums gate;
  panel_sums up;
  for (std::int32_t row = 0; row < m; row += pass) {
    const std::int32_t rows_now = std::min(pass, m - row);
    for (std::int32_t panel = panel_begin; panel < panel_end; ++panel) {
      impl_->leave_sums(input, row, rows_now, panel, gate);
      impl_->leave_sums(input, row, rows_now, panel + panels, up);
      out.take_gated(ops, gate, up, row, rows_now, panel);
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

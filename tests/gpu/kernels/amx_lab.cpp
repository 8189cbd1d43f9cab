#include "amx_lab.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <span>

#include "gpu/host/bf16.hpp"
#include "gpu/host/kernels/panel_check.hpp"
#include "gpu/host/kernels/panel_matmul.hpp"
#include "gpu/host/kernels/panel_unpack_portable.hpp"
#include "gpu/host/tile_packer.hpp"
#include "model/half.hpp"
#include "tests/support/emulated_tiles.hpp"

namespace tandem::gpu::host {

const kernel_table& emulated_kernels() {
  static const kernel_table table = with_panels<test::emulated_tiles, panel_unpack_portable>(portable_kernels());
  return table;
}

std::vector<amx_way> amx_ways() {
  std::vector<amx_way> ways = {{"emulated", &emulated_kernels(), false}};
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
  const bool unpacks = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
  if (choose_isa("avx512") && unpacks) ways.push_back({"machine_code", &amx_kernels(), true});
#endif
  return ways;
}

panel_lab::panel_lab(const made_tensor& tensor, packed_format format, std::vector<float> inputs)
    : columns_(static_cast<std::int32_t>(tensor.weight.columns)),
      format_(format),
      inputs_(std::move(inputs)),
      panel_(allocate_aligned(tile_bytes(format_, columns_))) {
  pack_tile(format_, tensor.weight, 0, panel_.get());
}

matmul_task panel_lab::task_of(const activations& x, std::int32_t rows) const {
  matmul_task task{};
  task.tile = panel_.get();
  task.blocks = blocks_of(format_, columns_);
  task.input = x.data().bytes.get();
  task.input_stride = x.data().stride;
  task.rows_per_group = x.data().rows_per_group;
  task.rows = rows;
  task.outputs = kPanelOutputs;
  return task;
}

std::vector<float> panel_lab::sums(const kernel_table& kernels, std::int32_t rows) const {
  activations x(activation_kind::bf16_columns, rows, columns_);
  x.convert(isa::portable, inputs_.data(), 0, rows);
  matmul_task task = task_of(x, rows);
  panel_sums left;
  task.sums = &left;
  kernels.matmul[static_cast<std::size_t>(format_)](task);
  if (kernels.release != nullptr) kernels.release();
  const std::int32_t stride = rows == 1 ? 1 : kColumnRows;
  std::vector<float> out;
  for (std::int32_t row = 0; row < rows; ++row)
    for (std::int32_t n = 0; n < kPanelOutputs; ++n)
      out.push_back(left.group[row / kColumnRows][n * stride + row % kColumnRows]);
  return out;
}

std::vector<float> panel_lab::product(const kernel_table& kernels, std::int32_t rows, std::int32_t outputs,
                                      std::int32_t first) const {
  constexpr std::int32_t kStride = 35;
  constexpr float kUntouched = -54321.0F;
  activations x(activation_kind::bf16_columns, rows, columns_);
  x.convert(isa::portable, inputs_.data() + std::int64_t{first} * columns_, 0, rows);
  std::vector<float> all(static_cast<std::size_t>(rows + 1) * kStride, kUntouched);
  matmul_task task = task_of(x, rows);
  task.out = all.data();
  task.out_stride = kStride;
  task.outputs = outputs;
  kernels.matmul[static_cast<std::size_t>(format_)](task);
  if (kernels.release != nullptr) kernels.release();
  std::vector<float> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i) / kStride;
    if (row < rows && static_cast<std::int32_t>(i) % kStride < outputs) {
      out.push_back(all[i]);
    } else {
      EXPECT_EQ(all[i], kUntouched) << "row " << row << " of " << rows << ", " << outputs << " outputs";
    }
  }
  return out;
}

std::vector<float> panel_lab::weights() const {
  const std::int64_t padded = blocks_of(format_, columns_) * kBlockInputs;
  std::vector<float> all(static_cast<std::size_t>(kPanelOutputs * padded));
  unpack_panel(format_, panel_.get(), padded, all.data());
  std::vector<float> out;
  for (std::int64_t n = 0; n < kPanelOutputs; ++n)
    out.insert(out.end(), all.begin() + n * padded, all.begin() + n * padded + columns_);
  return out;
}

std::vector<float> panel_lab::rounded_inputs() const {
  std::vector<float> out = inputs_;
  for (float& value : out) value = model::bfloat16_to_float(float_to_bf16(value));
  return out;
}

std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i]);
    if (!same && !(std::isnan(a[i]) && std::isnan(b[i]))) ++count;
  }
  return count;
}

}  // namespace tandem::gpu::host

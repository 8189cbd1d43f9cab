#include "amx_lab.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "gpu/host/kernels/lanes_portable.hpp"
#include "gpu/host/kernels/make_amx_table.hpp"
#include "gpu/host/tile_packer.hpp"
#include "tests/support/emulated_tiles.hpp"

namespace tandem::gpu::host {
namespace {

struct emulated_lanes : lanes_portable {
  static void store_bytes(std::byte* to, const bytes& values) { std::memcpy(to, values.at, sizeof values.at); }
  static ints load_ints(const std::int32_t* from) {
    ints out;
    std::memcpy(out.at, from, sizeof out.at);
    return out;
  }
  template <int ZeroBits>
  static bytes without_zero(bytes quants) {
    for (std::uint8_t& quant : quants.at) quant = static_cast<std::uint8_t>(quant - (1 << ZeroBits));
    return quants;
  }
};

isa vector_isa() {
  return choose_isa("avx512") ? isa::avx512 : isa::portable;
}

activation_kind kind_of(packed_format format, packing how) {
  const activation_kind kind = layout_of(format).input;
  return kind == activation_kind::int8 && how == packing::native_precise ? activation_kind::int8_pair : kind;
}

}  // namespace

const kernel_table& emulated_kernels() {
  static const kernel_table table =
      make_amx_table<test::emulated_tiles, emulated_lanes, &portable_kernels, kTileRows>();
  return table;
}

std::vector<amx_way> amx_ways() {
  std::vector<amx_way> ways = {{"emulated", &emulated_kernels(), false}};
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
  if (choose_isa("avx512")) {
    ways.push_back({"machine_code", &amx_kernels(), true});
    ways.push_back({"machine_code_for_many_rows", &amx_kernels_for_many_rows(), true});
  }
#endif
  return ways;
}

const kernel_table& vector_kernels() {
  return kernels_for(vector_isa());
}

tile_lab::tile_lab(const made_tensor& tensor, packing how, const std::vector<float>& inputs)
    : columns_(static_cast<std::int32_t>(tensor.weight.columns)),
      format_(how == packing::bf16 ? packed_format::bf16 : native_format(tensor.weight.kind)),
      kind_(kind_of(format_, how)),
      tile_(allocate_aligned(tile_bytes(format_, columns_))),
      x_(kind_, static_cast<std::int32_t>(inputs.size()) / columns_, columns_) {
  pack_tile(format_, tensor.weight, 0, tile_.get());
  x_.convert(vector_isa(), inputs.data(), 0, static_cast<std::int32_t>(inputs.size()) / columns_);
}

std::vector<float> tile_lab::product(const kernel_table& kernels, std::int32_t rows, std::int32_t outputs,
                                     std::int32_t first) const {
  constexpr std::int32_t kStride = 19;
  constexpr float kUntouched = -54321.0F;
  std::vector<float> all(static_cast<std::size_t>(rows + 1) * kStride, kUntouched);
  matmul_task task{};
  task.tile = tile_.get();
  task.blocks = blocks_of(format_, columns_);
  task.input = x_.data().bytes.get() + static_cast<std::size_t>(first) * x_.data().stride;
  task.input_stride = x_.data().stride;
  task.terms = kind_ == activation_kind::int8_pair ? 2 : 1;
  task.rows = rows;
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

std::vector<float> tile_lab::weights() const {
  std::vector<float> out(static_cast<std::size_t>(kTileOutputs) * static_cast<std::size_t>(columns_));
  for (std::int32_t n = 0; n < kTileOutputs; ++n) {
    unpack_row(format_, tile_.get(), n, columns_, out.data() + n * std::int64_t{columns_});
  }
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

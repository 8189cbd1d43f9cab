#include "gpu/host/kernels/panel_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/assert.hpp"
#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/kernels/panel_unpack_portable.hpp"
#include "gpu/reference/matmul_reference.hpp"

namespace tandem::gpu::host {
namespace {

/// Numbers that are the same everywhere (Knuth's MMIX generator).
class number_source {
 public:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(state_ >> 33);
  }
  /// In [-1, 1), a bf16.
  float next_float() { return static_cast<float>(next() % 256) * 0x1p-7F - 1.0F; }

 private:
  std::uint64_t state_ = 1;
};

template <packed_format Format>
void unpack_blocks(const std::byte* panel, std::int64_t columns, float* out) {
  constexpr format_layout kLayout = layout_of(Format);
  std::vector<std::byte> rows(kPanelBlockBytes);
  for (std::int64_t block = 0; block < columns / kBlockInputs; ++block) {
    const std::int64_t in_unit = block % kLayout.blocks_per_unit;
    const std::byte* header = panel + tile_bytes(Format, (block - in_unit) * kBlockInputs);
    const std::byte* plane = header + kLayout.header_bytes + static_cast<std::size_t>(in_unit) * kLayout.plane_bytes;
    panel_numbers<has_two_scales(Format)> numbers;
    if constexpr (Format == packed_format::panel_bf16) {
      std::memcpy(rows.data(), plane, kPanelBlockBytes);
    } else {
      panel_unpack_portable::numbers<Format>(header, in_unit, numbers);
      unpack_block<panel_unpack_portable, Format>(plane, numbers, rows.data());
    }
    for (std::int64_t n = 0; n < kPanelOutputs; ++n) {
      for (std::int32_t k = 0; k < kBlockInputs; ++k) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, rows.data() + kPanelRowBytes * static_cast<std::size_t>(n) + 2 * place_in_row(k), 2);
        out[n * columns + block * kBlockInputs + k] = model::bfloat16_to_float(bits);
      }
    }
  }
}

/// Any fields, ordinary numbers in the header.
aligned_bytes random_panel(packed_format format, std::int32_t columns, number_source& source) {
  const format_layout layout = layout_of(format);
  const std::size_t size = tile_bytes(format, columns);
  aligned_bytes panel = allocate_aligned(size);
  TANDEM_ASSERT(panel != nullptr);
  for (std::size_t i = 0; i < size; ++i) panel[i] = static_cast<std::byte>(source.next() & 0xFFU);
  const std::size_t unit = layout.header_bytes + static_cast<std::size_t>(layout.blocks_per_unit) * layout.plane_bytes;
  const std::size_t numbers =
      format == packed_format::panel_bf16 ? unit : std::min<std::size_t>(layout.header_bytes, 128);
  const bool has_one_half = format == packed_format::panel_six_super16;
  for (std::size_t at = 0; at < size; at += unit) {
    for (std::size_t i = 0; i < (has_one_half ? 64 : numbers); i += 2) {
      // As fp16 0.016 to 0.031, as bf16 about 1e-16: neither overflows.
      const auto half = static_cast<std::uint16_t>(0x2400U | (source.next() & 0x83FFU));
      std::memcpy(panel.get() + at + i, &half, sizeof half);
    }
  }
  return panel;
}

constexpr float kUntouched = 12345.0F;
constexpr std::int32_t kColumns = 19 * kBlockInputs;  // units and chunks that are not full
constexpr std::int32_t kStride = kPanelOutputs + 3;

/// One row, a group that is not full, a full one, two, several and a rest.
constexpr std::int32_t kCheckedRows[] = {1, 5, 16, 29, 75};
constexpr std::int32_t kMostCheckedRows = 75;

std::vector<std::uint32_t> columns_of(const kernel_table& kernels, const std::vector<float>& x, std::int32_t rows,
                                      std::int32_t together) {
  constexpr std::int64_t kPairs = kColumns / 2;
  const std::int32_t groups = (rows + together - 1) / together;
  std::vector<std::uint32_t> pairs(static_cast<std::size_t>(groups * together * kPairs));
  for (std::int32_t row = 0; row < rows; ++row)
    kernels.round_row_pairs(x.data() + std::int64_t{row} * kColumns, kColumns, pairs.data() + row * kPairs);
  std::vector<std::uint32_t> out(pairs.size());
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t at = group * together * kPairs;
    kernels.interleave(pairs.data() + at, kPairs, together, kColumns / kBlockInputs, out.data() + at);
  }
  return out;
}

/// Products of all checked rows in double precision, and the sums of the products' magnitudes.
struct exact_products {
  std::vector<double> value = std::vector<double>(std::size_t{kMostCheckedRows} * kPanelOutputs);
  std::vector<double> magnitude = std::vector<double>(value.size());
};

bool is_right(const std::vector<float>& out, const exact_products& exact, std::int32_t rows, std::int32_t outputs) {
  for (std::int32_t row = 0; row < rows; ++row) {
    for (std::int32_t n = 0; n < kStride; ++n) {
      const float value = out[static_cast<std::size_t>(row * kStride + n)];
      if (n >= outputs && value != kUntouched) return false;
      if (n >= outputs) continue;
      const auto at = static_cast<std::size_t>(row * kPanelOutputs + n);
      const double bound = (kColumns / 2 + 4) * 0x1p-24 * exact.magnitude[at] + 1e-30;
      if (!(std::abs(value - exact.value[at]) <= bound)) return false;
    }
  }
  return true;
}

std::vector<float> product_of(const kernel_table& tried, packed_format format, const std::byte* panel,
                              const std::vector<float>& x, std::int32_t rows, std::int32_t outputs) {
  const std::int32_t together = std::min(rows, kColumnRows);
  const std::vector<std::uint32_t> input = columns_of(tried, x, rows, together);
  std::vector<float> out(static_cast<std::size_t>(rows * kStride), kUntouched);
  matmul_task task{};
  task.tile = panel;
  task.blocks = kColumns / kBlockInputs;
  task.input = reinterpret_cast<const std::byte*>(input.data());
  task.input_stride = std::size_t{kColumns} * 2 * static_cast<std::size_t>(together);
  task.rows = rows;
  task.out = out.data();
  task.out_stride = kStride;
  task.outputs = outputs;
  task.rows_per_group = together;
  tried.matmul[static_cast<std::size_t>(format)](task);
  if (tried.release != nullptr) tried.release();
  return out;
}

std::optional<panel_fault> fault_of(const kernel_table& tried, packed_format format) {
  number_source source;
  const aligned_bytes panel = random_panel(format, kColumns, source);
  std::vector<float> weights(std::size_t{kPanelOutputs} * kColumns);
  unpack_panel(format, panel.get(), kColumns, weights.data());
  std::vector<float> x(std::size_t{kMostCheckedRows} * kColumns);
  for (float& value : x) value = source.next_float();
  exact_products exact;
  reference::matmul_reference(x, weights, kColumns, exact.value, exact.magnitude);
  for (const std::int32_t rows : kCheckedRows) {
    for (const std::int32_t outputs : {kPanelOutputs, 16, 5}) {
      if (!is_right(product_of(tried, format, panel.get(), x, rows, outputs), exact, rows, outputs))
        return panel_fault{format, rows};
    }
  }
  return std::nullopt;
}

}  // namespace

void unpack_panel(packed_format format, const std::byte* panel, std::int64_t columns, float* out) {
  switch (format) {
    case packed_format::panel_nibble_half:
      return unpack_blocks<packed_format::panel_nibble_half>(panel, columns, out);
    case packed_format::panel_nibble_half_min:
      return unpack_blocks<packed_format::panel_nibble_half_min>(panel, columns, out);
    case packed_format::panel_nibble_super_min:
      return unpack_blocks<packed_format::panel_nibble_super_min>(panel, columns, out);
    case packed_format::panel_byte_half:
      return unpack_blocks<packed_format::panel_byte_half>(panel, columns, out);
    case packed_format::panel_byte_half_min:
      return unpack_blocks<packed_format::panel_byte_half_min>(panel, columns, out);
    case packed_format::panel_byte_super_min:
      return unpack_blocks<packed_format::panel_byte_super_min>(panel, columns, out);
    case packed_format::panel_six_super16:
      return unpack_blocks<packed_format::panel_six_super16>(panel, columns, out);
    case packed_format::panel_bf16:
      return unpack_blocks<packed_format::panel_bf16>(panel, columns, out);
    default:
      TANDEM_ASSERT(false && "not a panel");
  }
}

std::optional<panel_fault> first_panel_fault(const kernel_table& tried) {
  for (std::size_t index = 0; index < kPackedFormats; ++index) {
    const auto format = static_cast<packed_format>(index);
    if (!is_panel(format)) continue;
    if (const auto fault = fault_of(tried, format)) return fault;
  }
  return std::nullopt;
}

std::string_view panel_name(packed_format format) {
  constexpr std::string_view kNames[] = {"Q4_0", "Q4_1", "Q4_K", "Q8_0", "Q5_1", "Q5_K", "Q6_K", "bf16"};
  return kNames[static_cast<std::size_t>(format) - static_cast<std::size_t>(packed_format::panel_nibble_half)];
}

std::string warning_of(const panel_fault& fault) {
  return "tandem: warning: this machine's AMX computes wrong products of " + std::string(panel_name(fault.format)) +
         " weights with " + std::to_string(fault.rows) + " rows. AVX-512 is used instead; please report this.\n";
}

}  // namespace tandem::gpu::host

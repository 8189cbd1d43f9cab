#pragma once
/// Fills a kernel_table with the AMX kernels over `Tiles` and `V`; what they do not serve stays with `Vector`, the
/// kernels of the instruction set below, whose bits they share.

#include "gpu/host/kernels/amx_bf16_matmul.hpp"
#include "gpu/host/kernels/amx_int8_matmul.hpp"

namespace tandem::gpu::host {
namespace {

using table_of = const kernel_table& (*)();

/// From here on a rest of rows costs less as a whole group of 16 than in the vector kernels, which cross it between 8
/// and 16 rows.
inline constexpr std::int32_t kRestForAGroup = 9;

/// The table entry of an int8 format: AMX from `FirstRows` rows on, the vector kernel for fewer and for a short rest.
template <class Tiles, class V, class Format, packed_format Which, table_of Vector, std::int32_t FirstRows>
void many_or_few_rows(const matmul_task& task) {
  static_assert(FirstRows >= kTileRows);
  const matmul_function few = Vector().matmul[static_cast<std::size_t>(Which)];
  if (task.rows < FirstRows) return few(task);
  const std::int32_t rest = task.rows % kTileRows;
  if (rest >= kRestForAGroup) return amx_int8_matmul<Tiles, V, Format>::run(task, task.rows / kTileRows + 1);
  matmul_task whole = task;
  whole.rows = task.rows - rest;
  amx_int8_matmul<Tiles, V, Format>::run(whole, whole.rows / kTileRows);
  if (rest > 0) few(rows_from(task, whole.rows));
}

template <class Tiles, class V, table_of Vector, std::int32_t FirstRows>
kernel_table make_amx_table() {
  kernel_table table = Vector();
  const auto set = [&]<class Format, packed_format Which>() {
    table.matmul[static_cast<std::size_t>(Which)] = &many_or_few_rows<Tiles, V, Format, Which, Vector, FirstRows>;
  };
  set.template operator()<nibble_half_format, packed_format::nibble_half>();
  set.template operator()<nibble_half_min_format, packed_format::nibble_half_min>();
  set.template operator()<nibble_super_min_format, packed_format::nibble_super_min>();
  set.template operator()<byte_half_format, packed_format::byte_half>();
  set.template operator()<byte_half_min_format, packed_format::byte_half_min>();
  set.template operator()<byte_super_min_format, packed_format::byte_super_min>();
  set.template operator()<super16_format, packed_format::six_super16>();
  table.matmul[static_cast<std::size_t>(packed_format::bf16)] = &amx_bf16_matmul<Tiles, V>::run;
  table.release = &Tiles::release;
  return table;
}

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// Whether one kernel_table computes what another does, and which of the two is faster on this machine. For kernels
/// that no test of the project's own has run on the machine at hand.

#include <cstdint>
#include <optional>
#include <string_view>

#include "gpu/host/kernels/kernel_table.hpp"

namespace tandem::gpu::host {

/// Where two tables differ.
struct table_difference {
  packed_format format;
  std::int32_t rows;
};

/// The first of a few small products in which `tried` is wrong: another bit than `trusted` for the int8 formats, for
/// bf16 further from double precision than its rounding allows. Formats for which both have the same function are
/// passed over. Some tens of milliseconds, by the operations counted; not measured on a machine with AMX.
std::optional<table_difference> first_difference(const kernel_table& trusted, const kernel_table& tried);

std::string_view format_name(packed_format format);

/// Seconds of one product, for few and for many rows.
struct product_seconds {
  double few_rows;   ///< 16
  double many_rows;  ///< 512
};

/// The best of a few runs, about a millisecond each. `format`: an int8 one.
product_seconds time_products(const kernel_table& kernels, packed_format format);

/// Which of three kernels with the same bits serves a format: one for every row count (`vector`), one from 16 rows on,
/// one from kManyRows on.
enum class kernel_reach : std::uint8_t { none, many_rows, few_rows };
kernel_reach worthwhile(const product_seconds& vector, const product_seconds& tile);

}  // namespace tandem::gpu::host

#pragma once
/// Whether the kernels of panels compute what they should: for tile registers that no test of the project's own has run
/// on the machine at hand.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpu/host/kernels/kernel_table.hpp"

namespace tandem::gpu::host {

/// Where a table is wrong.
struct panel_fault {
  packed_format format;
  std::int32_t rows;
};

/// The first of a few small products that is further from double precision than its summation allows, or that writes
/// outputs it does not have. Some tens of milliseconds.
std::optional<panel_fault> first_panel_fault(const kernel_table& tried);

/// The same for amx_kernels(), found out once; false with one line on standard error. The machine must offer AMX.
bool amx_proves_itself();

std::string_view panel_name(packed_format format);
/// The line that tells of it, with its end.
std::string warning_of(const panel_fault& fault);

/// The weights of one panel as they are multiplied, row by row, from plain C++.
void unpack_panel(packed_format format, const std::byte* panel, std::int64_t columns, float* out);

}  // namespace tandem::gpu::host

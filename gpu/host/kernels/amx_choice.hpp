#pragma once
/// Whether AMX may be trusted on this machine, and with which formats it is faster. Linked on x86-64 only.

#include <array>
#include <string>

#include "gpu/host/kernels/kernel_table.hpp"
#include "gpu/host/kernels/table_check.hpp"

namespace tandem::gpu::host {

/// Compares AMX with AVX-512 on small products; false, with one line on standard error, when it computes something else.
/// Otherwise times both and settles what chosen_amx_kernels() answers from then on. A few milliseconds. The machine must
/// offer AMX.
bool choose_amx_kernels();

/// The line it prints.
std::string warning_of(const table_difference& difference);

/// AMX for each format where it was found faster; for all of them when nothing has been measured. Thread-safe.
const kernel_table& chosen_amx_kernels();

/// `vector` with the formats of `few` or `many` (AMX from 16 rows, from kManyRows rows on) where `reach` says so; bf16 is
/// always that of `few`, because its bits differ and must not depend on a measurement.
kernel_table combined(const kernel_table& vector, const kernel_table& few, const kernel_table& many,
                      const std::array<kernel_reach, kPackedFormats>& reach);

}  // namespace tandem::gpu::host

#include "gpu/host/kernels/amx_choice.hpp"

#include <atomic>
#include <cstdio>
#include <string>

namespace tandem::gpu::host {
namespace {

/// Null until measured.
std::atomic<const kernel_table*> measured{nullptr};

std::array<kernel_reach, kPackedFormats> measure_reach(const kernel_table& vector, const kernel_table& tile) {
  std::array<kernel_reach, kPackedFormats> reach{};
  for (std::size_t i = 0; i < kPackedFormats; ++i) {
    const auto format = static_cast<packed_format>(i);
    if (layout_of(format).input != activation_kind::int8) continue;
    reach[i] = worthwhile(time_products(vector, format), time_products(tile, format));
  }
  return reach;
}

bool check_and_measure() {
  const kernel_table& vector = avx512_kernels();
  for (const kernel_table* tried : {&amx_kernels(), &amx_kernels_for_many_rows()}) {
    const auto difference = first_difference(vector, *tried);
    if (!difference) continue;
    std::fputs(warning_of(*difference).c_str(), stderr);
    return false;
  }
  static const kernel_table table =
      combined(vector, amx_kernels(), amx_kernels_for_many_rows(), measure_reach(vector, amx_kernels()));
  measured.store(&table, std::memory_order_release);
  return true;
}

}  // namespace

std::string warning_of(const table_difference& difference) {
  return "tandem: warning: this machine's AMX computes products of " + std::string(format_name(difference.format)) +
         " weights with " + std::to_string(difference.rows) +
         " rows differently from AVX-512. AVX-512 is used instead; please report this.\n";
}

kernel_table combined(const kernel_table& vector, const kernel_table& few, const kernel_table& many,
                      const std::array<kernel_reach, kPackedFormats>& reach) {
  kernel_table table = vector;
  for (std::size_t i = 0; i < kPackedFormats; ++i) {
    if (reach[i] == kernel_reach::few_rows) table.matmul[i] = few.matmul[i];
    if (reach[i] == kernel_reach::many_rows) table.matmul[i] = many.matmul[i];
  }
  const auto bf16 = static_cast<std::size_t>(packed_format::bf16);
  table.matmul[bf16] = few.matmul[bf16];
  table.release = few.release;
  return table;
}

bool choose_amx_kernels() {
  static const bool right = check_and_measure();
  return right;
}

const kernel_table& chosen_amx_kernels() {
  const kernel_table* table = measured.load(std::memory_order_acquire);
  return table != nullptr ? *table : amx_kernels();
}

}  // namespace tandem::gpu::host

#include "gpu/reference/matmul_reference.hpp"

#include <cmath>
#include <cstddef>

#include "core/assert.hpp"

namespace tandem::gpu::reference {

void matmul_reference(std::span<const float> x, std::span<const float> weights, std::int64_t inputs,
                      std::span<double> out, std::span<double> magnitude) {
  TANDEM_ASSERT(inputs > 0);
  const auto width = static_cast<std::size_t>(inputs);
  const std::size_t rows = x.size() / width;
  const std::size_t outputs = weights.size() / width;
  TANDEM_ASSERT(out.size() == rows * outputs && magnitude.size() == out.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t n = 0; n < outputs; ++n) {
      double sum = 0;
      double size = 0;
      for (std::size_t k = 0; k < width; ++k) {
        const double product = double{x[row * width + k]} * double{weights[n * width + k]};
        sum += product;
        size += std::abs(product);
      }
      out[row * outputs + n] = sum;
      magnitude[row * outputs + n] = size;
    }
  }
}

}  // namespace tandem::gpu::reference

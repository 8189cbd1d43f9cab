#include "gpu/reference/attention_reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem::gpu::reference {

std::vector<double> attention_reference(const std::vector<double>& query, const std::vector<std::vector<double>>& keys,
                                        const std::vector<std::vector<double>>& values, std::int32_t visible,
                                        double scale) {
  std::vector<double> weights(static_cast<std::size_t>(visible));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = scale * std::inner_product(query.begin(), query.end(), keys[i].begin(), 0.0);
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - largest);
  std::vector<double> out(query.size(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += weights[i] / total * values[i][d];
  return out;
}

std::vector<double> int8_round_trip(const std::vector<float>& numbers) {
  float largest = 0.0F;
  bool finite = true;
  for (const float each : numbers) {
    finite = finite && std::isfinite(each);
    largest = std::max(largest, std::abs(each));
  }
  if (!finite) return std::vector<double>(numbers.size(), std::nan(""));
  std::vector<double> out(numbers.size(), 0.0);
  if (largest < 1e-30F) return out;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    out[i] = std::nearbyint(double{numbers[i] * (127.0F / largest)}) * double{largest / 127.0F};
  return out;
}

}  // namespace tandem::gpu::reference

#include "app/latency_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem::app {

double percentile(std::vector<double> samples, double fraction) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(samples.size())));
  return samples[std::clamp<std::size_t>(rank, 1, samples.size()) - 1];
}

nlohmann::ordered_json summarize(const std::vector<double>& samples_ms) {
  const double sum = std::accumulate(samples_ms.begin(), samples_ms.end(), 0.0);
  return {{"mean", samples_ms.empty() ? 0 : sum / static_cast<double>(samples_ms.size())},
          {"p50", percentile(samples_ms, 0.5)},
          {"p90", percentile(samples_ms, 0.9)},
          {"p99", percentile(samples_ms, 0.99)}};
}

}  // namespace tandem::app

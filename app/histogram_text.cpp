#include "app/histogram_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

namespace tandem::app {
namespace {

/// The value of label `le` in `{a="b",le="0.5"}`.
double upper_bound_of(std::string_view labels) {
  constexpr std::string_view kLabel = "le=\"";
  const std::size_t at = labels.rfind(kLabel);
  if (at == std::string_view::npos) return std::numeric_limits<double>::infinity();
  return std::strtod(std::string(labels.substr(at + kLabel.size())).c_str(), nullptr);  // reads +Inf too
}

}  // namespace

histogram_counts read_histogram(std::string_view text, std::string_view name) {
  std::map<double, double> buckets;
  histogram_counts read;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(name)) continue;
    const std::string_view rest = line.substr(name.size());
    const std::size_t space = rest.rfind(' ');
    if (space == std::string_view::npos) continue;
    const double value = std::strtod(std::string(rest.substr(space)).c_str(), nullptr);
    if (rest.starts_with("_bucket")) buckets[upper_bound_of(rest.substr(0, space))] += value;
    if (rest.starts_with("_sum")) read.sum += value;
    if (rest.starts_with("_count")) read.count += value;
  }
  for (const auto& [bound, samples] : buckets) {
    read.bounds.push_back(bound);
    read.cumulative.push_back(samples);
  }
  return read;
}

histogram_counts histogram_counts::since(const histogram_counts& earlier) const {
  histogram_counts rest = *this;
  if (earlier.bounds != bounds) return rest;  // it was not there yet
  for (std::size_t i = 0; i < bounds.size(); ++i) rest.cumulative[i] -= earlier.cumulative[i];
  rest.sum -= earlier.sum;
  rest.count -= earlier.count;
  return rest;
}

double histogram_counts::quantile(double fraction) const {
  if (count <= 0) return 0;
  const double wanted = fraction * count;
  double below = 0;
  double lower = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (cumulative[i] >= wanted && cumulative[i] > below) {
      if (std::isinf(bounds[i])) return lower;
      return lower + (bounds[i] - lower) * (wanted - below) / (cumulative[i] - below);
    }
    below = cumulative[i];
    lower = bounds[i];
  }
  return lower;
}

nlohmann::ordered_json summarize(const histogram_counts& seconds) {
  constexpr double kMilliseconds = 1e3;
  return {{"mean", seconds.count > 0 ? seconds.sum / seconds.count * kMilliseconds : 0},
          {"p50", seconds.quantile(0.5) * kMilliseconds},
          {"p99", seconds.quantile(0.99) * kMilliseconds}};
}

}  // namespace tandem::app

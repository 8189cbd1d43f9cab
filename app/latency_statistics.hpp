#pragma once
/// Mean and percentiles of a bench.

#include <nlohmann/json.hpp>
#include <vector>

namespace tandem::app {

/// Nearest rank; 0 for no samples.
double percentile(std::vector<double> samples, double fraction);
/// {"mean", "p50", "p90", "p99"}.
nlohmann::ordered_json summarize(const std::vector<double>& samples_ms);

}  // namespace tandem::app

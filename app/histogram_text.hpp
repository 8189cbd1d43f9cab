#pragma once
/// Histograms as /metrics shows them, read back: so that a bench reports what a scrape would.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::app {

/// One histogram, its label sets added up.
struct histogram_counts {
  std::vector<double> bounds;      ///< upper ones, ascending, the last infinite; unit: the histogram's
  std::vector<double> cumulative;  ///< samples at or below each bound
  double sum = 0;
  double count = 0;

  /// The same histogram less an earlier reading of it.
  histogram_counts since(const histogram_counts& earlier) const;
  /// Linear within its bucket; 0 for no samples.
  double quantile(double fraction) const;
};

/// The histogram `name` of a text in Prometheus' format; without samples when it is not there.
histogram_counts read_histogram(std::string_view text, std::string_view name);

/// {"mean", "p50", "p99"} in milliseconds of a histogram in seconds.
nlohmann::ordered_json summarize(const histogram_counts& seconds);

}  // namespace tandem::app

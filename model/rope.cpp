/// Formulas: linear (position interpolation, Chen et al. 2023), llama3 (Llama 3.1's wavelength bands), YaRN (Peng et
/// al. 2023, with the ramp over dimensions as ggml and transformers compute it).

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/assert.hpp"
#include "model/model.hpp"

namespace tandem::model {
namespace {

double llama3_frequency(const rope_description& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double context = rope.original_context;
  if (wavelength > context / rope.low_frequency_factor) return frequency / rope.factor;
  if (wavelength < context / rope.high_frequency_factor) return frequency;
  const double smooth =
      (context / wavelength - rope.low_frequency_factor) / (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

// The (fractional) pair that turns `rotations` times over the original context.
double yarn_pair(const rope_description& rope, double rotations) {
  return rope.dimensions * std::log(rope.original_context / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

struct yarn_band {
  double low = 0.0;
  double high = 0.0;
};

yarn_band yarn_bounds(const rope_description& rope) {
  const double last = rope.dimensions - 1;
  yarn_band band{std::max(0.0, std::floor(yarn_pair(rope, rope.beta_fast))),
                 std::min(last, std::ceil(yarn_pair(rope, rope.beta_slow)))};
  if (band.low == band.high) band.high += 0.001;  // a step instead of a ramp
  return band;
}

// Fast pairs keep their frequency, slow ones are interpolated, those between are mixed.
double yarn_frequency(const rope_description& rope, const yarn_band& band, double frequency, std::size_t pair) {
  const double ramp = std::clamp((static_cast<double>(pair) - band.low) / (band.high - band.low), 0.0, 1.0);
  return frequency / rope.factor * ramp + frequency * (1.0 - ramp);
}

double yarn_magnitude(const rope_description& rope) {
  if (rope.attention_factor > 0.0) return rope.attention_factor;
  return rope.factor > 1.0 ? 0.1 * std::log(rope.factor) + 1.0 : 1.0;
}

double scaled(const rope_description& rope, const yarn_band& band, double frequency, std::size_t pair) {
  using kind = rope_description::scaling_kind;
  switch (rope.scaling) {
    case kind::none:
      return frequency;
    case kind::linear:
      return frequency / rope.factor;
    case kind::llama3:
      return llama3_frequency(rope, frequency);
    case kind::yarn:
      return yarn_frequency(rope, band, frequency, pair);
  }
  return frequency;
}

}  // namespace

rope_table rope_frequencies(const rope_description& rope) {
  TANDEM_ASSERT(rope.dimensions > 0 && rope.dimensions % 2 == 0);
  TANDEM_ASSERT(rope.frequency_divisors.empty() ||
                rope.frequency_divisors.size() == static_cast<std::size_t>(rope.dimensions / 2));
  const bool yarn = rope.scaling == rope_description::scaling_kind::yarn;
  const yarn_band band = yarn ? yarn_bounds(rope) : yarn_band{};
  rope_table table;
  table.frequencies.reserve(static_cast<std::size_t>(rope.dimensions / 2));
  for (int dimension = 0; dimension < rope.dimensions; dimension += 2) {
    const auto pair = static_cast<std::size_t>(dimension / 2);
    double frequency = std::pow(rope.theta, -static_cast<double>(dimension) / rope.dimensions);
    if (!rope.frequency_divisors.empty()) frequency /= static_cast<double>(rope.frequency_divisors[pair]);
    table.frequencies.push_back(scaled(rope, band, frequency, pair));
  }
  if (yarn) table.magnitude = yarn_magnitude(rope);
  return table;
}

}  // namespace tandem::model

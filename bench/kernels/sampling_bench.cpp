/// Drawing one token from a row of logits, and verifying a draft by rejection.
///
/// Names: sampling/<how>/<vocabulary>. Logits are normal numbers with a few dozen that stand out, as a model's do, or
/// "flat" without them; a new row each time, from a set that the last cache level holds. GB/s: of logits, each read at
/// least once. Per thread and second of processor time.

#include <benchmark/benchmark.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/sampling/acceptance.hpp"
#include "core/sampling/distribution.hpp"

namespace {

using namespace tandem;

constexpr std::size_t kRows = 8;

std::vector<float> random_logits(std::size_t vocabulary, bool flat) {
  constexpr int kPeaks = 40;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, flat ? 3.0F : 2.0F);
  std::vector<float> logits(kRows * vocabulary);
  for (float& each : logits) each = normal(random);
  for (std::size_t row = 0; row < kRows && !flat; ++row)
    for (int peak = 0; peak < kPeaks; ++peak) logits[row * vocabulary + random() % vocabulary] += 12.0F;
  return logits;
}

void count_bytes(benchmark::State& state, std::size_t vocabulary) {
  const double bytes = static_cast<double>(state.iterations()) * static_cast<double>(vocabulary * sizeof(float));
  state.counters["GB/s"] = benchmark::Counter(bytes / 1e9, benchmark::Counter::kIsRate);
}

void draw(benchmark::State& state, std::size_t vocabulary, const sampling_params& params, bool flat) {
  const std::vector<float> logits = random_logits(vocabulary, flat);
  std::int64_t position = 0;
  for (auto _ : state) {
    const auto row = std::span(logits).subspan(static_cast<std::size_t>(position) % kRows * vocabulary, vocabulary);
    benchmark::DoNotOptimize(draw_coupled(row, params, 7, position++));
  }
  count_bytes(state, vocabulary);
}

/// A run of one draft, the most probable token: mostly accepted, so that two rows are looked at.
void reject(benchmark::State& state, std::size_t vocabulary, const sampling_params& params) {
  std::vector<float> logits = random_logits(vocabulary, false);
  std::vector<token_id> drafts(kRows);
  for (std::size_t row = 0; row < kRows; ++row) {
    drafts[row] = static_cast<token_id>(row);
    logits[row * vocabulary + row] = 25.0F;
  }
  token_counts counts;
  std::int64_t position = 0;
  for (auto _ : state) {
    const std::size_t first = static_cast<std::size_t>(position) % (kRows - 1);
    acceptance_input input;
    input.params = &params;
    input.key = 7;
    input.position = position++;
    input.drafts = std::span(drafts).subspan(first, 1);
    input.rule = acceptance_rule::rejection;
    input.logits = [&](std::int32_t row) {
      return std::span(logits).subspan((first + static_cast<std::size_t>(row)) * vocabulary, vocabulary);
    };
    benchmark::DoNotOptimize(verify_drafts(input, counts));
  }
  count_bytes(state, 2 * vocabulary);
}

sampling_params params_of(float temperature, std::int32_t top_k, float top_p) {
  sampling_params params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  return params;
}

void declare() {
  for (const std::size_t vocabulary : {49'152U, 151'936U}) {
    const auto add = [&](const std::string& how, const sampling_params& params, bool flat = false) {
      benchmark::RegisterBenchmark(("sampling/" + how + "/" + std::to_string(vocabulary)).c_str(), draw, vocabulary,
                                   params, flat)
          ->Unit(benchmark::kMicrosecond);
    };
    add("greedy", params_of(0.0F, 0, 1.0F));
    add("top_k 40", params_of(0.8F, 40, 1.0F));
    add("top_p 0.95", params_of(0.8F, 0, 0.95F));
    add("top_k 40 top_p 0.95", params_of(0.8F, 40, 0.95F));
    add("temperature", params_of(0.8F, 0, 1.0F));
    add("flat top_p 0.95", params_of(0.8F, 0, 0.95F), true);
    add("flat temperature", params_of(0.8F, 0, 1.0F), true);
    benchmark::RegisterBenchmark(("sampling/rejection/" + std::to_string(vocabulary)).c_str(), reject, vocabulary,
                                 params_of(0.8F, 0, 1.0F))
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace

int main(int argc, char** argv) {
  declare();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

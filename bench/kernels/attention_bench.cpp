/// Attention over paged keys and values larger than the caches, and storing them.
///
/// Names: attention/<model's heads>/<bf16 or int8>/<case>; kv_store/<heads>/<format>. Each thread of a run has sequences
/// of its own, so figures are per thread, per second of processor time: GB/s of keys and values that a row must read
/// at least once, GFLOP/s of the two products; "raw" and "peak" are the shares of what the thread reads raw and of its
/// fp32 multiply-adds, measured in the same run. Prefill reads little for what it computes: look at its "peak".

#include <benchmark/benchmark.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/attention.hpp"
#include "gpu/host/host_resources.hpp"

namespace {

using namespace tandem;
using namespace gpu::host;

constexpr std::int64_t kSetBytes = 192 << 20;  // beyond a level-3 cache
constexpr std::int32_t kBlockSize = 16;

struct heads {
  const char* name;
  std::int32_t kv_heads;
  std::int32_t group;
  std::int32_t head_dim;
};
constexpr heads kSmollm2{"smollm2", 3, 3, 64};
constexpr heads kQwen{"qwen1.5b", 2, 6, 128};

struct work {
  const char* name;
  std::int32_t rows;
  std::int32_t context;  ///< positions the last row sees
};
constexpr work kWorks[] = {{"decode1/512", 1, 512},   {"decode1/4096", 1, 4096},   {"verify5/512", 5, 512},
                           {"verify5/4096", 5, 4096}, {"prefill512/512", 512, 512}, {"prefill512/4096", 512, 4096}};

isa chosen() {
  return choose_isa("").value();
}

/// One sequence per layer of the cache, as many as exceed the caches; its pages are shuffled.
struct sequences {
  sequences(const heads& model, kv_format format, const work& asked)
      : cache(make_cache(model, format, (asked.context + kBlockSize - 1) / kBlockSize)), of(model), what(asked) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    table.resize(static_cast<std::size_t>(cache.shape().blocks));
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<block_id>(i);
    std::shuffle(table.begin(), table.end(), random);
    std::vector<float> numbers(static_cast<std::size_t>(of.head_dim) + 4096);
    for (float& each : numbers) each = normal(random);
    for (std::int32_t layer = 0; layer < cache.shape().layers; ++layer)
      for (const block_id block : table)
        for (std::int32_t offset = 0; offset < kBlockSize; ++offset)
          for (std::int32_t head = 0; head < of.kv_heads; ++head)
            cache.store(layer, block, offset, head, numbers.data() + random() % 4096, numbers.data() + random() % 4096);
    queries.resize(static_cast<std::size_t>(std::int64_t{what.rows} * of.kv_heads * of.group * of.head_dim));
    for (float& each : queries) each = normal(random);
    out.resize(queries.size());
  }

  static kv_cache make_cache(const heads& model, kv_format format, std::int32_t blocks) {
    kv_shape shape{1, model.kv_heads, model.head_dim, kBlockSize, blocks, format};
    const auto bytes = static_cast<std::int64_t>(kv_cache::block_bytes(shape)) * blocks;
    shape.layers = static_cast<std::int32_t>(std::max<std::int64_t>(2, kSetBytes / bytes));
    return std::move(*kv_cache::make(shape));
  }

  attention_task task(std::int32_t layer, std::int32_t kv_head, std::int32_t first_row, std::int32_t rows) {
    const std::int32_t width = of.kv_heads * of.group * of.head_dim;
    const std::int64_t at = std::int64_t{first_row} * width + std::int64_t{kv_head} * of.group * of.head_dim;
    attention_task one;
    one.cache = cache.layer(layer);
    one.table = table.data();
    one.kv_head = kv_head;
    one.group = of.group;
    one.rows = rows;
    one.first_position = what.context - what.rows + first_row;
    one.queries = queries.data() + at;
    one.query_stride = width;
    one.out = out.data() + at;
    one.out_stride = width;
    one.scale = 1.0F / std::sqrt(static_cast<float>(of.head_dim));
    return one;
  }

  /// Of one layer.
  double bytes() const {
    return static_cast<double>(kv_cache::block_bytes(cache.shape())) / cache.shape().layers * cache.shape().blocks;
  }
  double operations() const {
    double positions = 0;
    for (std::int32_t row = 0; row < what.rows; ++row) positions += what.context - what.rows + row + 1;
    return 4.0 * positions * of.kv_heads * of.group * of.head_dim;
  }

  kv_cache cache;
  heads of;
  work what;
  std::vector<block_id> table;
  std::vector<float> queries;
  std::vector<float> out;
};

/// GB/s and GFLOP/s of one thread, from the benches that ran before.
double raw_gb_s = 0;
double peak_gflop_s = 0;

void attention(benchmark::State& state, const heads& of, kv_format format, const work& what) {
  constexpr std::int32_t kRowsPerItem = 16;  // as the executor cuts them
  const denormals_off as_computing_threads_have_it;
  sequences data(of, format, what);
  const attention_kernels& kernels = attention_for(chosen());
  std::int32_t turn = 0;
  for (auto _ : state) {
    const std::int32_t layer = turn++ % data.cache.shape().layers;
    for (std::int32_t row = 0; row < what.rows; row += kRowsPerItem)
      for (std::int32_t head = 0; head < of.kv_heads; ++head)
        kernels.attend(data.task(layer, head, row, std::min(kRowsPerItem, what.rows - row)));
  }
  const auto calls = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(data.bytes() * calls / 1e9, Counter::kIsRate);
  state.counters["GFLOP/s"] = Counter(data.operations() * calls / 1e9, Counter::kIsRate);
  if (raw_gb_s > 0) state.counters["raw"] = Counter(data.bytes() * calls / 1e9 / raw_gb_s, Counter::kIsRate);
  if (peak_gflop_s > 0)
    state.counters["peak"] = Counter(data.operations() * calls / 1e9 / peak_gflop_s, Counter::kIsRate);
}

void store(benchmark::State& state, const heads& of, kv_format format) {
  const denormals_off as_computing_threads_have_it;
  sequences data(of, format, {"", 1, 512});
  std::int32_t position = 0;
  for (auto _ : state) {
    const block_id block = data.table[static_cast<std::size_t>(position / kBlockSize % data.cache.shape().blocks)];
    for (std::int32_t head = 0; head < of.kv_heads; ++head)
      data.cache.store(0, block, position % kBlockSize, head, data.queries.data(), data.queries.data());
    ++position;
  }
  const double bytes = static_cast<double>(kv_cache::block_bytes(data.cache.shape())) / data.cache.shape().layers /
                       kBlockSize * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(bytes / 1e9, benchmark::Counter::kIsRate);
}

double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Sums of 64-bit words over a buffer of the set's size.
void raw_read(benchmark::State& state) {
  static const aligned_bytes buffer = [] {
    aligned_bytes bytes = allocate_aligned(kSetBytes);
    std::memset(bytes.get(), 1, kSetBytes);
    return bytes;
  }();
  const auto* from = reinterpret_cast<const std::uint64_t*>(buffer.get());
  const std::clock_t start = std::clock();
  for (auto _ : state) {
    std::uint64_t sums[32] = {};
    for (std::size_t i = 0; i + 32 <= kSetBytes / 8; i += 32)
      for (std::size_t j = 0; j < 32; ++j) sums[j] += from[i + j];
    benchmark::DoNotOptimize(sums);
  }
  const double gigabytes = static_cast<double>(kSetBytes) / 1e9 * static_cast<double>(state.iterations());
  raw_gb_s = std::max(raw_gb_s, gigabytes / seconds_since(start));
  state.counters["GB/s"] = benchmark::Counter(gigabytes, benchmark::Counter::kIsRate);
}

#if defined(__x86_64__)
/// The shape of a kernel at its best: numbers in the first cache, 8 × 2 sums in registers. 2 · 16 · 16 operations a round.
[[gnu::target("avx512f")]] void multiply_add_rounds(std::int64_t rounds, const float* numbers, float* out) {
  constexpr std::int64_t kNumbers = 64;  // per row, of 8 rows and of 2 columns of vectors
  __m512 sum[8][2] = {};
  for (std::int64_t i = 0; i < rounds; ++i) {
    const std::int64_t at = i % kNumbers;
    const __m512 left = _mm512_loadu_ps(numbers + at * 32);
    const __m512 right = _mm512_loadu_ps(numbers + at * 32 + 16);
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q) {
      const __m512 factor = _mm512_set1_ps(numbers[q * kNumbers + at]);
      sum[q][0] = _mm512_fmadd_ps(factor, left, sum[q][0]);
      sum[q][1] = _mm512_fmadd_ps(factor, right, sum[q][1]);
    }
  }
  for (const auto& row : sum) {
    _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), row[0]));
    _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), row[1]));
  }
}

void multiply_adds(benchmark::State& state) {
  constexpr std::int64_t kRounds = 1 << 16;
  const std::vector<float> numbers(64 * 32, 0.5F);
  const std::clock_t start = std::clock();
  std::vector<float> out(16);
  for (auto _ : state) multiply_add_rounds(kRounds, numbers.data(), out.data());
  benchmark::DoNotOptimize(out.data());
  const double gigaflops = 2.0 * 16 * 16 * kRounds / 1e9 * static_cast<double>(state.iterations());
  peak_gflop_s = std::max(peak_gflop_s, gigaflops / seconds_since(start));
  state.counters["GFLOP/s"] = benchmark::Counter(gigaflops, benchmark::Counter::kIsRate);
}
#endif

void declare() {
  benchmark::RegisterBenchmark("raw_read", raw_read)->Unit(benchmark::kMillisecond);
#if defined(__x86_64__)
  if (chosen() >= isa::avx512) benchmark::RegisterBenchmark("multiply_add", multiply_adds);
#endif
  for (const heads& of : {kSmollm2, kQwen})
    for (const auto& [format, format_name] :
         {std::pair(kv_format::bf16, "bf16"), {kv_format::int8, "int8"}, {kv_format::fp32, "fp32"}}) {
      const std::string end = std::string(of.name) + "/" + format_name;
      benchmark::RegisterBenchmark(("kv_store/" + end).c_str(), store, of, format);
      for (const work& what : kWorks)
        benchmark::RegisterBenchmark(("attention/" + end + "/" + what.name).c_str(), attention, of, format, what)
            ->Unit(benchmark::kMicrosecond);
    }
}

}  // namespace

int main(int argc, char** argv) {
  declare();
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("isa", std::string(isa_name(chosen())));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

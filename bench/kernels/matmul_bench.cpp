/// Matrix kernels over sets of weights larger than the caches, and the raw memory read they compete with.
///
/// Names: matmul/<kind>/<inputs>x<outputs>/<rows>. Each thread of a run takes its share of the tiles. Counters are per
/// second of processor time, so that other work on the machine is not charged: GB/s of packed weights, GFLOP/s. The
/// label names the instruction whose limit (limit/<instruction>, of the same run) bounds the arithmetic. Compare only
/// figures of one run: the machine's memory speed moves with the hour, so the raw read is measured at both ends of a
/// run.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/host/aligned_bytes.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "instruction_limits.hpp"

namespace {

using namespace tandem;
using gpu::host::activations;
using gpu::host::packed_matrix;
using model::tensor_kind;

constexpr std::size_t kSetBytes = 256U << 20;  // beyond a level-3 cache
constexpr std::int32_t kMaxRows = 512;

gpu::host::isa chosen_isa() {
  return gpu::host::choose_isa("").value();
}

/// Small random blocks; their fp16 fields are ordinary numbers because every second byte is kept below 0x3C.
std::vector<std::byte> random_blocks(std::size_t bytes) {
  std::mt19937 random(1);
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    out[i] = static_cast<std::byte>(i % 2 != 0 ? random() % 0x3C : random() % 256);
  return out;
}

/// Copies of one matrix that together exceed the caches; made once per shape, by whichever thread comes first.
const std::vector<packed_matrix>& matrices(tensor_kind kind, std::int64_t inputs, std::int64_t outputs) {
  static std::tuple<tensor_kind, std::int64_t, std::int64_t> current;
  static std::vector<packed_matrix> set;
  if (!set.empty() && current == std::tuple(kind, inputs, outputs)) return set;
  set.clear();
  current = {kind, inputs, outputs};
  const model::kind_traits& traits = model::traits(kind);
  const auto bytes = static_cast<std::size_t>(inputs * outputs / traits.block_elements * traits.block_bytes);
  const std::vector<std::byte> blocks = random_blocks(bytes);
  model::tensor weight;
  weight.kind = kind;
  weight.rows = outputs;
  weight.columns = inputs;
  weight.data = blocks;
  const model::tensor* weights[] = {&weight};
  for (std::size_t made = 0; made < kSetBytes; made += bytes) {
    set.push_back(packed_matrix::pack(weights, gpu::host::packing::native, chosen_isa(),
                                      [](std::int64_t count, const auto& body) { body(0, count); })
                      .value());
  }
  return set;
}

/// What the threads of one run share.
struct run_data {
  const std::vector<packed_matrix>* set = nullptr;
  std::unique_ptr<activations> x;
  std::vector<float> out;
};
run_data shared;

void prepare(tensor_kind kind, std::int64_t inputs, std::int64_t outputs, std::int32_t rows) {
  shared.set = &matrices(kind, inputs, outputs);
  const packed_matrix& first = shared.set->front();
  shared.x = std::make_unique<activations>(first.wants(), kMaxRows, static_cast<std::int32_t>(inputs));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(rows * inputs));
  for (float& value : values) value = normal(random);
  shared.x->expect(rows);
  shared.x->convert(chosen_isa(), values.data(), 0, rows);
  shared.out.resize(static_cast<std::size_t>(rows * outputs));
}

void matmul(benchmark::State& state, tensor_kind kind, std::int64_t inputs, std::int64_t outputs, std::int32_t rows) {
  if (state.thread_index() == 0) prepare(kind, inputs, outputs, rows);
  std::size_t turn = 0;
  double weight_bytes = 0;
  for (auto _ : state) {
    const packed_matrix& matrix = (*shared.set)[turn++ % shared.set->size()];
    const std::int32_t share = matrix.tiles() / state.threads();
    const std::int32_t begin = share * state.thread_index();
    const std::int32_t end = state.thread_index() + 1 == state.threads() ? matrix.tiles() : begin + share;
    constexpr std::int32_t kClaim = 32;  // tiles, as a team would claim them
    for (std::int32_t tile = begin; tile < end; tile += kClaim) {
      matrix.multiply(*shared.x, rows, tile, std::min(end, tile + kClaim), shared.out.data(), outputs);
    }
    weight_bytes += static_cast<double>(matrix.bytes()) / state.threads();
  }
  const double calls = static_cast<double>(state.iterations()) / state.threads();
  const double operations = 2.0 * static_cast<double>(inputs * outputs) * rows * calls;
  state.counters["GB/s"] = benchmark::Counter(weight_bytes / 1e9, benchmark::Counter::kIsRate);
  state.counters["GFLOP/s"] = benchmark::Counter(operations / 1e9, benchmark::Counter::kIsRate);
  if (state.thread_index() == 0) state.SetLabel(bench::limit_of(chosen_isa(), shared.set->front().wants()));
}

/// One instruction in a loop over registers: what arithmetic could reach if nothing else had to be done.
void limit(benchmark::State& state, const bench::instruction_limit& instruction) {
  for (auto _ : state) instruction.run();
  const double operations = instruction.operations * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(operations / 1e9, benchmark::Counter::kIsRate);
}

/// Sums of all words of a buffer of the set's size.
void raw_read(benchmark::State& state) {
  static const gpu::host::aligned_bytes buffer = [] {
    gpu::host::aligned_bytes bytes = gpu::host::allocate_aligned(kSetBytes);
    std::memset(bytes.get(), 1, kSetBytes);
    return bytes;
  }();
  const std::size_t share = kSetBytes / static_cast<std::size_t>(state.threads()) / 4096 * 4096;
  const std::byte* from = buffer.get() + share * static_cast<std::size_t>(state.thread_index());
  for (auto _ : state) benchmark::DoNotOptimize(bench::read_all(chosen_isa(), from, share));
  const double bytes = static_cast<double>(share) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(bytes / 1e9, benchmark::Counter::kIsRate);
}

/// Loading: packing one matrix on one thread; GB/s of the file's bytes.
void pack(benchmark::State& state, tensor_kind kind, gpu::host::packing how) {
  constexpr std::int64_t kInputs = 1536;
  constexpr std::int64_t kOutputs = 1536;
  const model::kind_traits& traits = model::traits(kind);
  const auto bytes = static_cast<std::size_t>(kInputs * kOutputs / traits.block_elements * traits.block_bytes);
  const std::vector<std::byte> blocks = random_blocks(bytes);
  model::tensor weight;
  weight.kind = kind;
  weight.rows = kOutputs;
  weight.columns = kInputs;
  weight.data = blocks;
  const model::tensor* weights[] = {&weight};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        packed_matrix::pack(weights, how, chosen_isa(), [](std::int64_t count, const auto& body) { body(0, count); }));
  }
  const double total = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(total / 1e9, benchmark::Counter::kIsRate);
}

struct shape {
  tensor_kind kind;
  std::int64_t inputs;
  std::int64_t outputs;
};

/// SmolLM2-135M as Q4_1 with a Q8_0 head, Qwen2.5-1.5B as Q4_K_M, and one matrix in bf16 and fp32.
constexpr shape kShapes[] = {
    {tensor_kind::q4_1, 576, 1536},  {tensor_kind::q4_1, 1536, 576},    {tensor_kind::q8_0, 576, 49152},
    {tensor_kind::q4_k, 1536, 2048}, {tensor_kind::q4_k, 1536, 8960},   {tensor_kind::q4_k, 8960, 1536},
    {tensor_kind::q6_k, 8960, 1536}, {tensor_kind::q6_k, 1536, 151936}, {tensor_kind::bf16, 1536, 8960},
    {tensor_kind::f32, 1536, 8960},
};

void declare_raw_read() {
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark("raw_read", raw_read)->Threads(threads)->Unit(benchmark::kMillisecond);
  }
}

void declare_limits() {
  for (const bench::instruction_limit& instruction : bench::limits_of(chosen_isa())) {
    for (const int threads : {1, 2}) {
      benchmark::RegisterBenchmark(("limit/" + instruction.name).c_str(), limit, instruction)->Threads(threads);
    }
  }
}

void declare() {
  declare_raw_read();
  declare_limits();
  for (const tensor_kind kind : {tensor_kind::q4_1, tensor_kind::q8_0, tensor_kind::q4_k, tensor_kind::q6_k}) {
    const std::string name = "pack/" + std::string(model::traits(kind).name);
    benchmark::RegisterBenchmark(name.c_str(), pack, kind, gpu::host::packing::native)->Unit(benchmark::kMillisecond);
  }
  for (const tensor_kind kind : {tensor_kind::bf16, tensor_kind::f32}) {
    const std::string name = "pack/" + std::string(model::traits(kind).name) + " to 8 bits";
    benchmark::RegisterBenchmark(name.c_str(), pack, kind, gpu::host::packing::int8)->Unit(benchmark::kMillisecond);
  }
  for (const shape& s : kShapes) {
    for (const std::int32_t rows : {1, 2, 4, 8, 16, 32, 64, 512}) {
      if (rows == 512 && s.outputs > 16384) continue;  // heads see few rows
      const std::string name = "matmul/" + std::string(model::traits(s.kind).name) + "/" + std::to_string(s.inputs) +
                               "x" + std::to_string(s.outputs) + "/" + std::to_string(rows);
      for (const int threads : {1, 2}) {
        benchmark::RegisterBenchmark(name.c_str(), matmul, s.kind, s.inputs, s.outputs, rows)
            ->Threads(threads)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  declare_raw_read();
}

}  // namespace

int main(int argc, char** argv) {
  declare();
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("isa", std::string(gpu::host::isa_name(chosen_isa())));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

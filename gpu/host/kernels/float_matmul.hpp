#pragma once
/// fp32_matmul and bf16_matmul, for every instruction set.
///
/// Computes:   out[m][n] = Σ_k x[m][k]·w[n][k] with fp32 sums.
/// Shapes and layout: tile as gpu/host/packed_layout.hpp says; any number of columns (bf16: padded to pairs with
/// zeros). Mapping:    one vector lane per output; steps (one input, or one pair) go alternately to two sums, which are
/// added at
///             the end. Up to kMaxRows rows share each loaded weight vector.
/// Requires:   nothing of its own; V brings the instruction set.
/// Cost:       one multiply-add per input and output; weights are read once per kMaxRows rows.
/// Accuracy:   sequential fp32 summation, error ≤ columns/2 · 2^-24 of Σ|x·w|. bf16 products are exact in fp32; AVX-512
///             treats denormal bf16 as zero. Bits differ between instruction sets (fused or not).
/// Tested by:  tests/gpu/kernels.

#include <cstddef>
#include <cstdint>

#include "gpu/host/kernels/row_groups.hpp"

namespace tandem::gpu::host {
namespace {

/// One step is one input.
struct fp32_step {
  static constexpr std::size_t kInputBytes = 4;
  template <class V>
  struct weights {
    typename V::floats values;
    explicit weights(const std::byte* at) : values(V::load_floats(at)) {}
    typename V::floats times(const std::byte* x, typename V::floats sum) const {
      return V::multiply_add(values, V::broadcast(*reinterpret_cast<const float*>(x)), sum);
    }
  };
};

/// One step is a pair of inputs.
struct bf16_step {
  static constexpr std::size_t kInputBytes = 4;
  template <class V>
  struct weights {
    typename V::bf16_pairs values;
    explicit weights(const std::byte* at) : values(V::load_pairs(at)) {}
    typename V::floats times(const std::byte* x, typename V::floats sum) const {
      return V::pair_dot(sum, values, *reinterpret_cast<const std::uint32_t*>(x));
    }
  };
};

template <class V, class Step>
struct float_matmul {
  static constexpr int kMaxRows = V::kFloatRows;
  static constexpr std::size_t kPrefetchAhead = 4096;  // see int8_matmul
  using floats = typename V::floats;
  using weights = typename Step::template weights<V>;

  template <int Rows>
  static void add_step(const std::byte* tile, const std::byte* const (&x)[Rows], std::int64_t step,
                       floats (&sums)[Rows]) {
    const std::byte* at_weights = tile + static_cast<std::size_t>(step) * kCacheLine;
    V::template prefetch<kCacheLine>(at_weights + kPrefetchAhead);
    const weights w(at_weights);
    const std::size_t at = static_cast<std::size_t>(step) * Step::kInputBytes;
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) sums[r] = w.times(x[r] + at, sums[r]);
  }

  template <int Rows>
  static void run(const matmul_task& task, std::int32_t row) {
    const std::byte* x[Rows];
    TANDEM_UNROLL
    for (int r = 0; r < Rows; ++r) x[r] = task.input + static_cast<std::size_t>(row + r) * task.input_stride;
    for (int lane = 0; lane < kTileOutputs; lane += V::kLanes) {
      floats even[Rows];
      floats odd[Rows];
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) even[r] = odd[r] = V::zero_floats();
      const std::byte* tile = task.tile + 4 * lane;
      std::int64_t step = 0;
      for (; step + 1 < task.blocks; step += 2) {
        add_step<Rows>(tile, x, step, even);
        add_step<Rows>(tile, x, step + 1, odd);
      }
      if (step < task.blocks) add_step<Rows>(tile, x, step, even);
      TANDEM_UNROLL
      for (int r = 0; r < Rows; ++r) store_outputs<V>(task, row + r, lane, V::add(even[r], odd[r]));
    }
  }
};

}  // namespace
}  // namespace tandem::gpu::host

#pragma once
/// Weight tensors with random blocks of every kind, made by hand.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gpu/host/activations.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "model/model.hpp"

namespace tandem::gpu::host {

/// A tensor and the bytes it points to. Movable, not copyable: `weight` refers to `bytes`.
struct made_tensor {
  made_tensor(model::tensor_kind kind, std::int64_t rows, std::int64_t columns, std::uint32_t seed);
  made_tensor(made_tensor&&) noexcept = default;

  /// All rows as numbers, by the model's own definition of the format.
  std::vector<float> values() const;

  std::vector<std::byte> bytes;
  model::tensor weight;
};

/// Every kind a file can have.
inline constexpr model::tensor_kind kAllKinds[] = {
    model::tensor_kind::f32,  model::tensor_kind::f16,  model::tensor_kind::bf16, model::tensor_kind::q4_0,
    model::tensor_kind::q4_1, model::tensor_kind::q5_0, model::tensor_kind::q5_1, model::tensor_kind::q8_0,
    model::tensor_kind::q4_k, model::tensor_kind::q5_k, model::tensor_kind::q6_k};

/// The instruction sets this machine has, portable first.
std::vector<isa> offered_isas();

/// Gaussian values, one column ten times larger, as activations look.
std::vector<float> made_inputs(std::int32_t rows, std::int32_t columns, std::uint32_t seed);

/// Packs on the calling thread; fails the test on an error.
packed_matrix packed(const std::vector<const model::tensor*>& weights, packing how, isa set);

/// All outputs of the first `rows` rows of `inputs`.
std::vector<float> product(const packed_matrix& matrix, isa set, const std::vector<float>& inputs, std::int32_t rows);

}  // namespace tandem::gpu::host

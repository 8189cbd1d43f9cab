#pragma once
/// The parts of a model in plain double precision, from which the oracles of models and draft heads are made.

#include <cstdint>
#include <vector>

#include "model/model.hpp"

namespace tandem::gpu::reference {

using row = std::vector<double>;
using rows = std::vector<row>;

/// Dequantised row of a weight.
row weights_of(const model::tensor& weight, std::int64_t index);
row multiply(const model::tensor& weight, const row& x);
void add(row& to, const row& what);
/// Null: nothing.
void add_bias(row& to, const model::tensor* bias);
row normalize(const row& x, const model::tensor& weight, double epsilon);

/// Adds to each position of `hidden` its attention over the positions up to it; query, key and value read `inputs`.
/// Rotation counts positions from 0.
void add_attention(const model::description& model, const model::layer& layer, const rows& inputs, rows& hidden);
void add_mlp(const model::description& model, const model::layer& layer, row& hidden);

}  // namespace tandem::gpu::reference

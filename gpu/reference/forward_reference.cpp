#include "gpu/reference/forward_reference.hpp"

#include <cmath>

#include "gpu/reference/attention_reference.hpp"

namespace tandem::gpu::reference {
namespace {

using row = std::vector<double>;
using rows = std::vector<row>;

row weights_of(const model::tensor& weight, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(weight.columns));
  model::dequantize_row(weight, index, values.data());
  return {values.begin(), values.end()};
}

row multiply(const model::tensor& weight, const row& x) {
  row out(static_cast<std::size_t>(weight.rows), 0.0);
  for (std::size_t n = 0; n < out.size(); ++n) {
    const row w = weights_of(weight, static_cast<std::int64_t>(n));
    for (std::size_t k = 0; k < x.size(); ++k) out[n] += w[k] * x[k];
  }
  return out;
}

void add(row& to, const row& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

void add_bias(row& to, const model::tensor* bias) {
  if (bias != nullptr) add(to, weights_of(*bias, 0));
}

row normalize(const row& x, const model::tensor& weight, double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  row out = weights_of(weight, 0);
  for (std::size_t i = 0; i < x.size(); ++i) out[i] *= x[i] * scale;
  return out;
}

rows split_heads(const row& x, std::int32_t head_dim) {
  rows heads;
  for (auto at = x.begin(); at != x.end(); at += head_dim) heads.emplace_back(at, at + head_dim);
  return heads;
}

void rotate(row& head, const model::rope_table& table, bool interleaved, std::size_t position) {
  const std::size_t pairs = table.frequencies.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(position) * table.frequencies[i];
    double& a = head[interleaved ? 2 * i : i];
    double& b = head[interleaved ? 2 * i + 1 : i + pairs];
    const double before = a;
    a = (before * std::cos(angle) - b * std::sin(angle)) * table.magnitude;
    b = (before * std::sin(angle) + b * std::cos(angle)) * table.magnitude;
  }
}

/// Heads of a projection, with its bias, head norm and rotation where they are given.
rows project(const model::description& model, const model::tensor& weight, const model::tensor* bias,
             const model::tensor* norm, const row& x, const model::rope_table* table, std::size_t position) {
  row all = multiply(weight, x);
  add_bias(all, bias);
  rows heads = split_heads(all, model.head_dim);
  for (row& head : heads) {
    if (norm != nullptr) head = normalize(head, *norm, model.norm_epsilon);
    if (table != nullptr) rotate(head, *table, model.rope.interleaved, position);
  }
  return heads;
}

/// Adds the attention of every position to `hidden`.
void attend(const model::description& model, const model::layer& layer, const model::rope_table& table, rows& hidden) {
  const auto kv_heads = static_cast<std::size_t>(model.kv_heads);
  std::vector<rows> keys(kv_heads);
  std::vector<rows> values(kv_heads);
  const double scale = 1.0 / std::sqrt(static_cast<double>(model.head_dim));
  for (std::size_t position = 0; position < hidden.size(); ++position) {
    const row x = normalize(hidden[position], *layer.attention_norm, model.norm_epsilon);
    const rows queries = project(model, *layer.query, layer.query_bias, layer.query_norm, x, &table, position);
    const rows key = project(model, *layer.key, layer.key_bias, layer.key_norm, x, &table, position);
    const rows value = project(model, *layer.value, layer.value_bias, nullptr, x, nullptr, position);
    for (std::size_t head = 0; head < kv_heads; ++head) {
      keys[head].push_back(key[head]);
      values[head].push_back(value[head]);
    }
    row attended;
    for (std::size_t head = 0; head < queries.size(); ++head) {
      const std::size_t shared = head * kv_heads / queries.size();
      const row part = attention_reference(queries[head], keys[shared], values[shared],
                                           static_cast<std::int32_t>(position) + 1, scale);
      attended.insert(attended.end(), part.begin(), part.end());
    }
    add(hidden[position], multiply(*layer.output, attended));
    add_bias(hidden[position], layer.output_bias);
  }
}

void add_mlp(const model::description& model, const model::layer& layer, row& hidden) {
  const row x = normalize(hidden, *layer.mlp_norm, model.norm_epsilon);
  row gate = multiply(*layer.gate, x);
  const row up = multiply(*layer.up, x);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
  add(hidden, multiply(*layer.down, gate));
}

}  // namespace

hidden_states hidden_reference(const model::description& model, std::span<const token_id> tokens) {
  const model::rope_table table = model::rope_frequencies(model.rope);
  rows hidden;
  for (const token_id token : tokens) hidden.push_back(weights_of(*model.embedding, token));
  hidden_states states;
  for (const model::layer& layer : model.layers) {
    states.entering.push_back(hidden);
    attend(model, layer, table, hidden);
    for (row& each : hidden) add_mlp(model, layer, each);
  }
  states.entering.push_back(hidden);
  for (const row& each : hidden) states.normalized.push_back(normalize(each, *model.final_norm, model.norm_epsilon));
  return states;
}

std::vector<std::vector<double>> forward_reference(const model::description& model, std::span<const token_id> tokens) {
  rows logits = hidden_reference(model, tokens).normalized;
  for (row& each : logits) each = multiply(*model.output, each);
  return logits;
}

}  // namespace tandem::gpu::reference

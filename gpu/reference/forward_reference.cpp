#include "gpu/reference/forward_reference.hpp"

#include <utility>

#include "gpu/reference/reference_layer.hpp"

namespace tandem::gpu::reference {

std::vector<std::vector<std::vector<double>>> hidden_reference(const model::description& model,
                                                               std::span<const token_id> tokens) {
  rows hidden;
  for (const token_id token : tokens) hidden.push_back(weights_of(*model.embedding, token));
  std::vector<rows> entering;
  for (const model::layer& layer : model.layers) {
    entering.push_back(hidden);
    rows inputs;
    for (const row& each : hidden) inputs.push_back(normalize(each, *layer.attention_norm, model.norm_epsilon));
    add_attention(model, layer, inputs, hidden);
    for (row& each : hidden) add_mlp(model, layer, each);
  }
  entering.push_back(std::move(hidden));
  return entering;
}

std::vector<std::vector<double>> forward_reference(const model::description& model, std::span<const token_id> tokens) {
  rows last = std::move(hidden_reference(model, tokens).back());
  for (row& each : last) each = multiply(*model.output, normalize(each, *model.final_norm, model.norm_epsilon));
  return last;
}

}  // namespace tandem::gpu::reference

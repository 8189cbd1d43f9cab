#include "gpu/reference/forward_reference.hpp"

#include <utility>

#include "gpu/reference/reference_layer.hpp"

namespace tandem::gpu::reference {

hidden_states hidden_reference(const model::description& model, std::span<const token_id> tokens) {
  rows hidden;
  for (const token_id token : tokens) hidden.push_back(weights_of(*model.embedding, token));
  hidden_states states;
  for (const model::layer& layer : model.layers) {
    states.entering.push_back(hidden);
    rows inputs;
    for (const row& each : hidden) inputs.push_back(normalize(each, *layer.attention_norm, model.norm_epsilon));
    add_attention(model, layer, inputs, hidden);
    for (row& each : hidden) add_mlp(model, layer, each);
  }
  for (const row& each : hidden) states.normalized.push_back(normalize(each, *model.final_norm, model.norm_epsilon));
  states.entering.push_back(std::move(hidden));
  return states;
}

std::vector<std::vector<double>> forward_reference(const model::description& model, std::span<const token_id> tokens) {
  rows logits = std::move(hidden_reference(model, tokens).normalized);
  for (row& each : logits) each = multiply(*model.output, each);
  return logits;
}

}  // namespace tandem::gpu::reference

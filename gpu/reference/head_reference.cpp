#include "gpu/reference/head_reference.hpp"

#include <cmath>

#include "core/assert.hpp"
#include "gpu/reference/forward_reference.hpp"
#include "gpu/reference/reference_layer.hpp"

namespace tandem::gpu::reference {
namespace {

rows medusa_logits(const model::head_description& head, const model::description& target, const row& feature,
                   std::size_t count) {
  rows logits;
  for (std::size_t i = 0; i < count; ++i) {
    row x = feature;
    for (const model::medusa_block& block : head.medusa[i].blocks) {
      row more = multiply(*block.weight, x);
      add_bias(more, block.bias);
      for (std::size_t j = 0; j < x.size(); ++j) x[j] += more[j] / (1.0 + std::exp(-more[j]));
    }
    logits.push_back(multiply(head.medusa[i].output != nullptr ? *head.medusa[i].output : *target.output, x));
  }
  return logits;
}

row joined(row left, const row& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// The target's features of each of its rows.
rows features_of(const model::head_description& head, const model::description& target,
                 std::span<const token_id> tokens) {
  const auto hidden = hidden_reference(target, tokens).entering;
  rows features;
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    if (head.kind != model::head_kind::eagle3) {
      features.push_back(normalize(hidden.back()[position], *target.final_norm, target.norm_epsilon));
      continue;
    }
    row all;
    for (const std::int32_t layer : head.eagle.feature_layers)
      all = joined(std::move(all), hidden[static_cast<std::size_t>(layer)][position]);
    features.push_back(multiply(*head.eagle.combine, all));
  }
  return features;
}

/// Runs the layer over all entries (token, feature); the last one's output.
row run_layer(const model::head_description& head, const model::description& target, std::span<const token_id> tokens,
              const rows& features) {
  const model::eagle_head& parts = head.eagle;
  const double epsilon = head.sizes.norm_epsilon;
  rows inputs;
  rows hidden;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const row embedding = weights_of(parts.embedding != nullptr ? *parts.embedding : *target.embedding, tokens[i]);
    if (head.kind == model::head_kind::eagle3) {
      const row normed = normalize(features[i], *parts.feature_norm, epsilon);
      inputs.push_back(joined(normalize(embedding, *parts.embedding_norm, epsilon), normed));
      hidden.push_back(parts.residual_is_normed ? normed : features[i]);
    } else {
      row entering = multiply(*parts.combine, joined(embedding, features[i]));
      add_bias(entering, parts.combine_bias);
      inputs.push_back(entering);
      hidden.push_back(entering);
    }
  }
  add_attention(head.sizes, parts.transformer, inputs, hidden);
  add_mlp(head.sizes, parts.transformer, hidden.back());
  return hidden.back();
}

}  // namespace

std::vector<std::vector<double>> head_reference(const model::head_description& head, const model::description& target,
                                                std::span<const token_id> tokens, std::span<const token_id> drafts) {
  TANDEM_ASSERT(tokens.size() >= 2);
  rows features = features_of(head, target, tokens.first(tokens.size() - 1));
  if (head.kind == model::head_kind::medusa) return medusa_logits(head, target, features.back(), drafts.size());
  std::vector<token_id> entries(tokens.begin() + 1, tokens.end());
  rows logits;
  for (const token_id draft : drafts) {
    const row out = run_layer(head, target, entries, features);
    const row normed =
        head.eagle.final_norm == nullptr ? out : normalize(out, *head.eagle.final_norm, head.sizes.norm_epsilon);
    logits.push_back(multiply(head.eagle.output != nullptr ? *head.eagle.output : *target.output, normed));
    entries.push_back(draft);
    features.push_back(out);
  }
  return logits;
}

}  // namespace tandem::gpu::reference

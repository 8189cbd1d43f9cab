#include "tests/support/made_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/assert.hpp"

namespace tandem::test {
namespace {

/// About normal, standard deviation 1: a sum of twelve uniform numbers, the same on every platform.
class noise_source {
 public:
  explicit noise_source(std::uint64_t seed) : engine_(seed) {}
  float next() {
    double sum = 0.0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine_() >> 11) * 0x1p-53;
    return static_cast<float>(sum - 6.0);
  }

 private:
  std::mt19937_64 engine_;
};

made_tensor filled(std::string gguf_name, std::string huggingface_name, std::int64_t rows, std::int64_t columns,
                   float value) {
  made_tensor made{std::move(gguf_name), std::move(huggingface_name), rows, columns, {}, rows == 1, 0};
  made.values.assign(static_cast<std::size_t>(rows * columns), value);
  return made;
}

/// Fills tensors with weights of one seed, and noise of another on top.
class weight_source {
 public:
  weight_source(const rand_options& options)
      : weights_(options.seed), noise_(options.noise_seed * 0x9E3779B97F4A7C15ULL), noise_level_(options.noise) {}

  void fill(made_tensor& made, float deviation, float mean = 0.0F) {
    for (float& value : made.values) {
      value = mean + deviation * weights_.next();
      if (noise_level_ > 0.0F) value += deviation * noise_level_ * noise_.next();
    }
  }

 private:
  noise_source weights_;
  noise_source noise_;
  float noise_level_;
};

struct part {
  const char* gguf;
  const char* huggingface;
  std::int64_t rows;
  std::int64_t columns;
  float gain;  // deviation = gain / sqrt(columns)
  std::int32_t rope_heads;
};

std::vector<part> matrices_of(const made_model& made) {
  const std::int64_t query = made.heads * made.head_dim;
  const std::int64_t key = made.kv_heads * made.head_dim;
  return {
      {"attn_q.weight", "self_attn.q_proj.weight", query, made.hidden, 1.5F, made.heads},
      {"attn_k.weight", "self_attn.k_proj.weight", key, made.hidden, 1.5F, made.kv_heads},
      {"attn_v.weight", "self_attn.v_proj.weight", key, made.hidden, 1.5F, 0},
      {"attn_output.weight", "self_attn.o_proj.weight", made.hidden, query, 1.5F, 0},
      {"ffn_gate.weight", "mlp.gate_proj.weight", made.intermediate, made.hidden, 1.2F, 0},
      {"ffn_up.weight", "mlp.up_proj.weight", made.intermediate, made.hidden, 1.2F, 0},
      {"ffn_down.weight", "mlp.down_proj.weight", made.hidden, made.intermediate, 1.2F, 0},
  };
}

std::vector<part> biases_of(const made_model& made) {
  if (made.architecture != "qwen2") return {};
  const std::int64_t query = made.heads * made.head_dim;
  const std::int64_t key = made.kv_heads * made.head_dim;
  return {
      {"attn_q.bias", "self_attn.q_proj.bias", 1, query, 0.0F, made.heads},
      {"attn_k.bias", "self_attn.k_proj.bias", 1, key, 0.0F, made.kv_heads},
      {"attn_v.bias", "self_attn.v_proj.bias", 1, key, 0.0F, 0},
  };
}

std::string gguf_layer(std::int32_t layer, const char* rest) {
  return fmt::format("blk.{}.{}", layer, rest);
}
std::string huggingface_layer(std::int32_t layer, const char* rest) {
  return fmt::format("model.layers.{}.{}", layer, rest);
}

// All tensors, zero; norms one.
void add_tensors(made_model& made) {
  const auto vocabulary = static_cast<std::int64_t>(made.tokenizer.tokens.size());
  auto& tensors = made.tensors;
  tensors.push_back(filled("token_embd.weight", "model.embed_tokens.weight", vocabulary, made.hidden, 0.0F));
  for (std::int32_t layer = 0; layer < made.layers; ++layer) {
    for (const auto& [gguf, huggingface] : {std::pair{"attn_norm.weight", "input_layernorm.weight"},
                                            std::pair{"ffn_norm.weight", "post_attention_layernorm.weight"}}) {
      tensors.push_back(filled(gguf_layer(layer, gguf), huggingface_layer(layer, huggingface), 1, made.hidden, 1.0F));
    }
    for (const auto& parts : {matrices_of(made), biases_of(made)}) {
      for (const part& each : parts) {
        tensors.push_back(filled(gguf_layer(layer, each.gguf), huggingface_layer(layer, each.huggingface), each.rows,
                                 each.columns, 0.0F));
        tensors.back().rope_heads = each.rope_heads;
      }
    }
  }
  tensors.push_back(filled("output_norm.weight", "model.norm.weight", 1, made.hidden, 1.0F));
  if (!made.tied) tensors.push_back(filled("output.weight", "lm_head.weight", vocabulary, made.hidden, 0.0F));
}

float deviation_of(const made_model& made, const made_tensor& tensor) {
  if (tensor.gguf_name == "token_embd.weight") return made.tied ? 0.5F : 1.0F;
  if (tensor.gguf_name == "output.weight") return 0.5F;
  if (tensor.vector) return 0.2F;
  for (const part& each : matrices_of(made)) {
    if (tensor.gguf_name.ends_with(each.gguf)) return each.gain / std::sqrt(static_cast<float>(tensor.columns));
  }
  return 0.0F;
}

std::vector<token_id> ring_of(const cycle_options& options) {
  if (!options.ring.empty()) return options.ring;
  std::vector<token_id> ring(std::min<std::size_t>(256, options.tokenizer.tokens.size()));
  std::iota(ring.begin(), ring.end(), 0);
  return ring;
}

// target[t]: the token that follows t.
std::vector<token_id> successors(const cycle_options& options) {
  const auto ring = ring_of(options);
  std::vector<token_id> target(options.tokenizer.tokens.size(), ring[0]);
  for (std::size_t position = 0; position < ring.size(); ++position) {
    const bool bad = options.bad_every > 0 && (position + 1) % static_cast<std::size_t>(options.bad_every) == 0;
    target[static_cast<std::size_t>(ring[position])] = ring[(position + (bad ? 2 : 1)) % ring.size()];
  }
  return target;
}

}  // namespace

made_model make_cycle(const cycle_options& options) {
  made_model made;
  made.tokenizer = options.tokenizer;
  made.context_length = options.context_length;
  const auto vocabulary = options.tokenizer.tokens.size();
  made.hidden = static_cast<std::int32_t>((vocabulary + 31) / 32 * 32);
  made.intermediate = 32;
  made.layers = 1;
  made.head_dim = 8;
  add_tensors(made);
  const auto hidden = static_cast<std::size_t>(made.hidden);
  auto& embedding = made.tensors.front().values;
  auto& head = made.tensors.back().values;
  // The final norm stretches a unit vector to sqrt(hidden).
  const float weight = options.lead / std::sqrt(static_cast<float>(made.hidden));
  const auto target = successors(options);
  for (std::size_t token = 0; token < vocabulary; ++token) {
    embedding[token * hidden + token] = 1.0F;
    head[static_cast<std::size_t>(target[token]) * hidden + token] = weight;
  }
  return made;
}

made_model make_rand(const rand_options& options) {
  TANDEM_ASSERT(options.hidden % options.heads == 0);
  made_model made;
  made.architecture = options.architecture;
  made.hidden = options.hidden;
  made.intermediate = options.intermediate;
  made.layers = options.layers;
  made.heads = options.heads;
  made.kv_heads = options.kv_heads;
  made.head_dim = options.hidden / options.heads;
  made.context_length = options.context_length;
  made.tied = options.tied;
  made.rope = options.rope;
  made.kind = options.kind;
  made.tokenizer = options.tokenizer;
  add_tensors(made);
  weight_source source(options);
  for (made_tensor& tensor : made.tensors) {
    const bool norm = tensor.gguf_name.ends_with("norm.weight");
    source.fill(tensor, deviation_of(made, tensor), norm ? 1.0F : 0.0F);
  }
  return made;
}

}  // namespace tandem::test

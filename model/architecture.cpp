#include "model/architecture.hpp"

#include <array>

namespace tandem::model {
namespace {

constexpr layer_part kAttentionNorm{&layer::attention_norm, "attn_norm.weight", "input_layernorm.weight",
                                    size_of::one,           size_of::hidden,    need::always};
constexpr layer_part kQuery{&layer::query,  "attn_q.weight", "self_attn.q_proj.weight",
                            size_of::query, size_of::hidden, need::always};
constexpr layer_part kKey{&layer::key,        "attn_k.weight", "self_attn.k_proj.weight",
                          size_of::key_value, size_of::hidden, need::always};
constexpr layer_part kValue{&layer::value,      "attn_v.weight", "self_attn.v_proj.weight",
                            size_of::key_value, size_of::hidden, need::always};
constexpr layer_part kOutput{&layer::output,  "attn_output.weight", "self_attn.o_proj.weight",
                             size_of::hidden, size_of::query,       need::always};
constexpr layer_part kMlpNorm{&layer::mlp_norm, "ffn_norm.weight", "post_attention_layernorm.weight",
                              size_of::one,     size_of::hidden,   need::always};
constexpr layer_part kGate{&layer::gate,          "ffn_gate.weight", "mlp.gate_proj.weight",
                           size_of::intermediate, size_of::hidden,   need::always};
constexpr layer_part kUp{&layer::up,      "ffn_up.weight", "mlp.up_proj.weight", size_of::intermediate,
                         size_of::hidden, need::always};
constexpr layer_part kDown{&layer::down,    "ffn_down.weight",     "mlp.down_proj.weight",
                           size_of::hidden, size_of::intermediate, need::always};

constexpr layer_part query_bias(need needed) {
  return {&layer::query_bias, "attn_q.bias", "self_attn.q_proj.bias", size_of::one, size_of::query, needed};
}
constexpr layer_part key_bias(need needed) {
  return {&layer::key_bias, "attn_k.bias", "self_attn.k_proj.bias", size_of::one, size_of::key_value, needed};
}
constexpr layer_part value_bias(need needed) {
  return {&layer::value_bias, "attn_v.bias", "self_attn.v_proj.bias", size_of::one, size_of::key_value, needed};
}
constexpr layer_part output_bias(need needed) {
  return {&layer::output_bias, "attn_output.bias", "self_attn.o_proj.bias", size_of::one, size_of::hidden, needed};
}

constexpr std::array kLlamaParts{kAttentionNorm,
                                 kQuery,
                                 kKey,
                                 kValue,
                                 query_bias(need::attention_bias),
                                 key_bias(need::attention_bias),
                                 value_bias(need::attention_bias),
                                 kOutput,
                                 output_bias(need::attention_bias),
                                 kMlpNorm,
                                 kGate,
                                 kUp,
                                 kDown};

constexpr std::array kQwen2Parts{kAttentionNorm,
                                 kQuery,
                                 kKey,
                                 kValue,
                                 query_bias(need::always),
                                 key_bias(need::always),
                                 value_bias(need::always),
                                 kOutput,
                                 kMlpNorm,
                                 kGate,
                                 kUp,
                                 kDown};

constexpr std::array kArchitectures{
    architecture{"llama", true, true, kLlamaParts},
    architecture{"qwen2", false, false, kQwen2Parts},
};

// rope_freqs is read on its own; inv_freq is a buffer that old checkpoints carry and that follows from config.json.
constexpr std::array<std::string_view, 1> kGgufIgnored{"rope_freqs.weight"};
constexpr std::array<std::string_view, 1> kHuggingfaceIgnored{"rotary_emb.inv_freq"};

}  // namespace

const tensor_naming kGgufNaming{
    "blk.", &layer_part::gguf_name, "token_embd.weight", "output_norm.weight", "output.weight", kGgufIgnored};
const tensor_naming kHuggingfaceNaming{"model.layers.",
                                       &layer_part::huggingface_name,
                                       "model.embed_tokens.weight",
                                       "model.norm.weight",
                                       "lm_head.weight",
                                       kHuggingfaceIgnored};

const architecture* find_architecture(std::string_view name) {
  for (const architecture& each : kArchitectures) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::string supported_architectures() {
  std::string names;
  for (const architecture& each : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

}  // namespace tandem::model

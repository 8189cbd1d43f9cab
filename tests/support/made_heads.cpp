#include "tests/support/made_heads.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "core/assert.hpp"
#include "tests/support/encode_tensor.hpp"
#include "tests/support/file_bytes.hpp"

namespace tandem::test {
namespace {

using json = nlohmann::ordered_json;
using kind = model::tensor_kind;

std::string number(std::int64_t value) {
  return std::to_string(value);
}

safetensors_entry matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                         const std::vector<float>& values) {
  TANDEM_ASSERT(values.size() == static_cast<std::size_t>(rows * columns));
  return {name, "F32", {rows, columns}, encode_tensor(values, kind::f32)};
}

safetensors_entry vector(const std::string& name, const std::vector<float>& values) {
  return {name, "F32", {static_cast<std::int64_t>(values.size())}, encode_tensor(values, kind::f32)};
}

safetensors_entry integers(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string data(values.size() * sizeof(std::int64_t), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  return {name, "I64", {static_cast<std::int64_t>(values.size())}, data};
}

/// Random weights that keep a row's size.
class random_parts {
 public:
  random_parts(made_heads& made, std::uint64_t seed) : made_(made), random_(seed) {}

  void add_matrix(const std::string& name, std::int64_t rows, std::int64_t columns, float gain = 1.0F) {
    made_.tensors.push_back(
        matrix(name, rows, columns, draw(rows * columns, gain / std::sqrt(static_cast<float>(columns)), 0.0F)));
  }
  void add_vector(const std::string& name, std::int64_t count, float mean) {
    made_.tensors.push_back(vector(name, draw(count, 0.2F, mean)));
  }

 private:
  std::vector<float> draw(std::int64_t count, float deviation, float mean) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) {
      double sum = 0;
      for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_() >> 11) * 0x1p-53;
      value = mean + deviation * static_cast<float>(sum - 6.0);
    }
    return values;
  }

  made_heads& made_;
  std::mt19937_64 random_;
};

std::int64_t vocabulary_of(const made_model& target) {
  return static_cast<std::int64_t>(target.tokenizer.tokens.size());
}

/// Tensor and number of entries of a trimmed vocabulary; the whole without ids.
std::int64_t add_ids(made_heads& made, const made_model& target, const std::vector<token_id>& ids) {
  if (ids.empty()) return vocabulary_of(target);
  std::vector<std::int64_t> differences;
  for (std::size_t i = 0; i < ids.size(); ++i) differences.push_back(ids[i] - static_cast<std::int64_t>(i));
  made.tensors.push_back(integers("d2t", differences));
  return static_cast<std::int64_t>(ids.size());
}

json layer_config(const made_model& target) {
  return {{"model_type", "llama"},
          {"hidden_size", target.hidden},
          {"intermediate_size", target.intermediate},
          {"num_hidden_layers", 1},
          {"num_attention_heads", target.heads},
          {"num_key_value_heads", target.kv_heads},
          {"head_dim", target.head_dim},
          {"max_position_embeddings", target.context_length},
          {"rms_norm_eps", target.norm_epsilon},
          {"rope_theta", target.rope.theta},
          {"vocab_size", vocabulary_of(target)}};
}

void add_layer(random_parts& parts, const made_model& target, const std::string& prefix, std::int64_t inputs) {
  const std::int64_t hidden = target.hidden;
  const std::int64_t query = std::int64_t{target.heads} * target.head_dim;
  const std::int64_t key = std::int64_t{target.kv_heads} * target.head_dim;
  parts.add_matrix(prefix + "self_attn.q_proj.weight", query, inputs, 1.5F);
  parts.add_matrix(prefix + "self_attn.k_proj.weight", key, inputs, 1.5F);
  parts.add_matrix(prefix + "self_attn.v_proj.weight", key, inputs, 1.5F);
  parts.add_matrix(prefix + "self_attn.o_proj.weight", hidden, query, 1.5F);
  parts.add_vector(prefix + "post_attention_layernorm.weight", hidden, 1.0F);
  parts.add_matrix(prefix + "mlp.gate_proj.weight", target.intermediate, hidden);
  parts.add_matrix(prefix + "mlp.up_proj.weight", target.intermediate, hidden);
  parts.add_matrix(prefix + "mlp.down_proj.weight", hidden, target.intermediate);
}

void add_third(random_parts& parts, made_heads& made, const made_model& target, const eagle_options& options) {
  const std::int64_t hidden = target.hidden;
  parts.add_matrix("fc.weight", hidden, 3 * hidden);
  parts.add_vector(options.layer_prefix + "input_layernorm.weight", hidden, 1.0F);
  parts.add_vector(options.layer_prefix + "hidden_norm.weight", hidden, 1.0F);
  add_layer(parts, target, options.layer_prefix, 2 * hidden);
  parts.add_vector("norm.weight", hidden, 1.0F);
  if (options.own_embedding) parts.add_matrix("embed_tokens.weight", vocabulary_of(target), hidden, 8.0F);
  const std::int64_t rows = add_ids(made, target, options.ids);
  if (options.own_output) parts.add_matrix("lm_head.weight", rows, hidden, 4.0F);
}

/// next[t]: the token behind t. The model's own answer, read from its output matrix.
std::vector<token_id> successors_of(const made_model& cycle) {
  const made_tensor& output = cycle.tensors.back();
  std::vector<token_id> next(static_cast<std::size_t>(output.rows), 0);
  for (std::int64_t row = 0; row < output.rows; ++row)
    for (std::int64_t column = 0; column < output.rows; ++column)
      if (output.values[static_cast<std::size_t>(row * output.columns + column)] > 0)
        next[static_cast<std::size_t>(column)] = static_cast<token_id>(row);
  return next;
}

}  // namespace

safetensors_entry& made_heads::tensor(const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& each) { return each.name == name; });
  TANDEM_ASSERT(found != tensors.end());
  return *found;
}

void made_heads::erase(const std::string& name) {
  TANDEM_ASSERT(std::erase_if(tensors, [&](const auto& each) { return each.name == name; }) == 1);
}

void made_heads::reword(const std::string& from, const std::string& to) {
  const std::size_t at = config.find(from);
  TANDEM_ASSERT(at != std::string::npos);
  config.replace(at, from.size(), to);
}

void write_heads(const made_heads& made, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", made.config);
  write_file(folder / made.weights_name, safetensors_bytes(made.tensors));
}

made_heads make_medusa(const made_model& target, const medusa_options& options) {
  made_heads made;
  made.config = json{{"medusa_num_heads", options.heads}, {"medusa_num_layers", options.blocks}}.dump();
  random_parts parts(made, options.seed);
  const std::int64_t rows = add_ids(made, target, options.ids);
  for (std::int32_t head = 0; head < options.heads; ++head) {
    const std::string name = options.prefix + number(head) + ".";
    for (std::int32_t block = 0; block < options.blocks; ++block) {
      parts.add_matrix(name + number(block) + ".linear.weight", target.hidden, target.hidden);
      parts.add_vector(name + number(block) + ".linear.bias", target.hidden, 0.0F);
    }
    if (options.own_outputs) parts.add_matrix(name + number(options.blocks) + ".weight", rows, target.hidden, 4.0F);
  }
  return made;
}

made_heads make_eagle(const made_model& target, const eagle_options& options) {
  made_heads made;
  json config = layer_config(target);
  config["architectures"] = {options.third ? "LlamaForCausalLMEagle3" : "LlamaForCausalLMEagle"};
  if (options.third) {
    config["draft_vocab_size"] = options.ids.empty() ? vocabulary_of(target) : std::int64_t(options.ids.size());
    config["norm_before_residual"] = options.norm_before_residual;
    config["eagle_aux_hidden_state_layer_ids"] = {0, target.layers / 2, target.layers};
  }
  made.config = config.dump();
  random_parts parts(made, options.seed);
  if (options.third) {
    add_third(parts, made, target, options);
    return made;
  }
  parts.add_matrix("fc.weight", target.hidden, 2 * std::int64_t{target.hidden});
  parts.add_vector("fc.bias", target.hidden, 0.0F);
  add_layer(parts, target, "layers.0.", target.hidden);
  return made;
}

made_heads make_cycle_medusa(const cycle_options& options, std::int32_t heads) {
  const made_model target = make_cycle(options);
  const std::vector<token_id> next = successors_of(target);
  const auto hidden = static_cast<std::size_t>(target.hidden);
  made_heads made;
  made.config = json{{"medusa_num_heads", heads}, {"medusa_num_layers", 1}}.dump();
  for (std::int32_t head = 0; head < heads; ++head) {
    std::vector<float> output(next.size() * hidden, 0.0F);
    for (std::size_t token = 0; token < next.size(); ++token) {
      token_id guessed = next[token];
      for (std::int32_t i = 0; i <= head; ++i) guessed = next[static_cast<std::size_t>(guessed)];
      output[static_cast<std::size_t>(guessed) * hidden + token] = options.lead / std::sqrt(static_cast<float>(hidden));
    }
    const std::vector<float> nothing(hidden * hidden, 0.0F);
    made.tensors.push_back(matrix(number(head) + ".0.linear.weight", target.hidden, target.hidden, nothing));
    made.tensors.push_back(
        matrix(number(head) + ".1.weight", static_cast<std::int64_t>(next.size()), target.hidden, output));
  }
  return made;
}

made_heads make_cycle_eagle(const cycle_options& options) {
  const made_model target = make_cycle(options);
  const std::vector<token_id> next = successors_of(target);
  made_heads made = make_eagle(target, {.third = false});
  const auto hidden = static_cast<std::size_t>(target.hidden);
  std::vector<float> combine(hidden * 2 * hidden, 0.0F);
  for (std::size_t token = 0; token < next.size(); ++token)
    combine[static_cast<std::size_t>(next[token]) * 2 * hidden + hidden + token] = 1.0F;
  made.tensor("fc.weight").data = encode_tensor(combine, kind::f32);
  for (const char* silent : {"fc.bias", "layers.0.self_attn.o_proj.weight", "layers.0.mlp.down_proj.weight"}) {
    std::string& data = made.tensor(silent).data;
    std::fill(data.begin(), data.end(), '\0');
  }
  return made;
}

}  // namespace tandem::test

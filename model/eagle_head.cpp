// EAGLE heads: tensor names of the authors' checkpoints, which vLLM and SGLang read too.
#include <fmt/format.h>

#include <algorithm>

#include "config/limits.hpp"
#include "model/draft_heads.hpp"
#include "model/head_files.hpp"
#include "model/huggingface_config.hpp"

namespace tandem::model {
namespace {

constexpr std::int64_t kFeatures = 3;  // hidden states of the target that EAGLE-3 takes

std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

/// Sizes of the head's layer.
void read_sizes(head_files& files, head_description& head) {
  hyperparameters numbers;
  numbers.architecture = "eagle";
  numbers.source = files.source;
  read_layer_numbers(files.fields, numbers);
  if (files.failed()) return;
  if (const auto checked = check_hyperparameters(numbers); !checked) {
    return files.finder.refuse(checked.error().code, checked.error().param, checked.error().message);
  }
  if (numbers.layers != 1) {
    return files.fields.refuse(error_code::unsupported, "num_hidden_layers",
                               fmt::format("EAGLE heads of {} layers are not supported, only of 1", numbers.layers));
  }
  files.must_equal("vocabulary", *numbers.vocabulary, files.target.vocabulary_size);
  description& sizes = head.sizes;
  sizes.hidden_size = narrow(numbers.hidden);
  sizes.intermediate_size = narrow(numbers.intermediate);
  sizes.heads = narrow(numbers.heads);
  sizes.kv_heads = narrow(numbers.kv_heads);
  sizes.head_dim = narrow(numbers.head_dim);
  sizes.norm_epsilon = static_cast<float>(numbers.norm_epsilon);
  sizes.rope = numbers.rope;
}

/// `inputs` of query, key and value.
void read_layer(head_files& files, const std::string& prefix, std::int64_t inputs, head_description& head) {
  tensor_finder& finder = files.finder;
  const description& sizes = head.sizes;
  const std::int64_t hidden = sizes.hidden_size;
  const std::int64_t query = std::int64_t{sizes.heads} * sizes.head_dim;
  const std::int64_t key = std::int64_t{sizes.kv_heads} * sizes.head_dim;
  layer& to = head.eagle.transformer;
  to.query = finder.need(prefix + "self_attn.q_proj.weight", query, inputs);
  to.key = finder.need(prefix + "self_attn.k_proj.weight", key, inputs);
  to.value = finder.need(prefix + "self_attn.v_proj.weight", key, inputs);
  to.query_bias = finder.need_if_there(prefix + "self_attn.q_proj.bias", 1, query);
  to.key_bias = finder.need_if_there(prefix + "self_attn.k_proj.bias", 1, key);
  to.value_bias = finder.need_if_there(prefix + "self_attn.v_proj.bias", 1, key);
  to.output = finder.need(prefix + "self_attn.o_proj.weight", hidden, query);
  to.output_bias = finder.need_if_there(prefix + "self_attn.o_proj.bias", 1, hidden);
  to.mlp_norm = finder.need(prefix + "post_attention_layernorm.weight", 1, hidden);
  to.gate = finder.need(prefix + "mlp.gate_proj.weight", sizes.intermediate_size, hidden);
  to.up = finder.need(prefix + "mlp.up_proj.weight", sizes.intermediate_size, hidden);
  to.down = finder.need(prefix + "mlp.down_proj.weight", hidden, sizes.intermediate_size);
}

/// Embedding and output are the target's own, also where the folder carries copies.
void read_first(head_files& files, head_description& head) {
  const std::int64_t hidden = head.sizes.hidden_size;
  files.must_equal("hidden size", hidden, files.target.hidden_size);
  if (files.fields.boolean_or("add_para_norm", false))
    files.fields.refuse(error_code::unsupported, "add_para_norm", "this setting is not supported");
  if (files.failed()) return;
  head.eagle.combine = files.finder.need("fc.weight", hidden, 2 * hidden);
  head.eagle.combine_bias = files.finder.need_if_there("fc.bias", 1, hidden);
  read_layer(files, "layers.0.", hidden, head);
  head.draft_vocabulary = files.target.vocabulary_size;
}

text::json_field feature_setting(const config_fields& fields) {
  constexpr std::string_view kKey = "eagle_aux_hidden_state_layer_ids";
  return fields[kKey] ? fields[kKey] : fields["eagle_config"][kKey];
}

/// At most kFeatures + 1 of them; -1 for what is no number of a layer, none when it is no list.
std::vector<std::int32_t> layer_numbers(text::json_field list, std::int32_t layers) {
  std::vector<std::int32_t> found;
  if (!list.is_array()) return found;
  for (const auto& each : list.items()) {
    std::int64_t id = -1;
    if (each.get(id) || id < 0 || id > layers) id = -1;
    found.push_back(narrow(id));
    if (found.size() > kFeatures) break;
  }
  return found;
}

/// Two conventions are about: the layers before which the states are taken (EAGLE's code, vLLM), or behind which they
/// are (SGLang's configs). The first of the latter is always 1; of the former only that of a one-layer model is, which
/// is misread.
std::vector<std::int32_t> read_feature_layers(head_files& files) {
  const std::int32_t layers = narrow(static_cast<std::int64_t>(files.target.layers.size()));
  const text::json_field setting = feature_setting(files.fields);
  if (!setting) return usual_feature_layers(layers);
  std::vector<std::int32_t> found = layer_numbers(setting, layers);
  if (found.size() == kFeatures && found[0] == 1)
    for (std::int32_t& id : found) ++id;
  const bool fits = found.size() == kFeatures && *std::min_element(found.begin(), found.end()) >= 0 &&
                    *std::max_element(found.begin(), found.end()) <= layers;
  if (!fits) {
    files.fields.refuse(error_code::corrupt, "eagle_aux_hidden_state_layer_ids",
                        fmt::format("it must name three layers from 0 to {}, the model's", layers));
  }
  return found;
}

std::int64_t output_rows(head_files& files) {
  const tensor* output = files.finder.find("lm_head.weight");
  const std::int64_t rows = output == nullptr ? files.target.vocabulary_size : output->rows;
  return std::clamp<std::int64_t>(rows, 1, static_cast<std::int64_t>(limits::kMaxVocabulary));
}

void read_third_ends(head_files& files, head_description& head) {
  const std::int64_t hidden = head.sizes.hidden_size;
  tensor_finder& finder = files.finder;
  head.eagle.final_norm = finder.need("norm.weight", 1, hidden);
  head.eagle.embedding = finder.need_if_there("embed_tokens.weight", files.target.vocabulary_size, hidden);
  head.draft_vocabulary = narrow(output_rows(files));
  head.eagle.output = finder.need_if_there("lm_head.weight", head.draft_vocabulary, hidden);
  if (head.eagle.embedding == nullptr || head.eagle.output == nullptr)
    files.must_equal("hidden size", hidden, files.target.hidden_size);
  if (!files.failed()) read_target_ids(files, head);
}

void read_third(head_files& files, head_description& head) {
  const std::int64_t hidden = head.sizes.hidden_size;
  const std::int64_t width = files.fields.integer_or("target_hidden_size", limits::kMaxHidden, hidden);
  files.must_equal("hidden size", width, files.target.hidden_size);
  head.eagle.residual_is_normed = files.fields.boolean_or("norm_before_residual", false);
  head.eagle.feature_layers = read_feature_layers(files);
  if (files.failed()) return;
  head.eagle.combine = files.finder.need("fc.weight", hidden, kFeatures * files.target.hidden_size);
  const std::string prefix =
      files.finder.find("midlayer.input_layernorm.weight") != nullptr ? "midlayer." : "layers.0.";
  head.eagle.embedding_norm = files.finder.need(prefix + "input_layernorm.weight", 1, hidden);
  head.eagle.feature_norm = files.finder.need(prefix + "hidden_norm.weight", 1, hidden);
  read_layer(files, prefix, 2 * hidden, head);
  if (!files.failed()) read_third_ends(files, head);
}

}  // namespace

std::vector<std::int32_t> usual_feature_layers(std::int32_t layers) {
  return {std::min(2, layers), layers / 2, std::max(0, layers - 3)};
}

void read_eagle(head_files& files, head_description& head) {
  read_sizes(files, head);
  if (files.failed()) return;
  head.kind == head_kind::eagle3 ? read_third(files, head) : read_first(files, head);
}

}  // namespace tandem::model

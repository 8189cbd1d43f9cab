#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/assert.hpp"
#include "tests/support/encode_tensor.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/safetensors_writer.hpp"

namespace tandem::test {
namespace {

using json = nlohmann::ordered_json;

json rope_scaling(const model::rope_description& rope) {
  using kind = model::rope_description::scaling_kind;
  switch (rope.scaling) {
    case kind::none:
      return nullptr;
    case kind::linear:
      return {{"rope_type", "linear"}, {"factor", rope.factor}};
    case kind::llama3:
      return {{"rope_type", "llama3"},
              {"factor", rope.factor},
              {"low_freq_factor", rope.low_frequency_factor},
              {"high_freq_factor", rope.high_frequency_factor},
              {"original_max_position_embeddings", rope.original_context}};
    case kind::yarn:
      return {
          {"rope_type", "yarn"}, {"factor", rope.factor}, {"original_max_position_embeddings", rope.original_context}};
  }
  return nullptr;
}

json config(const made_model& made) {
  json out = {
      {"architectures", {made.architecture == "qwen2" ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", made.architecture},
      {"hidden_size", made.hidden},
      {"intermediate_size", made.intermediate},
      {"num_hidden_layers", made.layers},
      {"num_attention_heads", made.heads},
      {"num_key_value_heads", made.kv_heads},
      {"head_dim", made.head_dim},
      {"max_position_embeddings", made.context_length},
      {"rms_norm_eps", made.norm_epsilon},
      {"rope_theta", made.rope.theta},
      {"rope_scaling", rope_scaling(made.rope)},
      {"hidden_act", "silu"},
      {"vocab_size", made.tokenizer.tokens.size()},
      {"tie_word_embeddings", made.tied},
  };
  if (made.tokenizer.bos != kNoToken) out["bos_token_id"] = made.tokenizer.bos;
  if (made.tokenizer.eos != kNoToken) out["eos_token_id"] = made.tokenizer.eos;
  return out;
}

json added_token(std::size_t id, const made_token& token) {
  return {{"id", id},
          {"content", token.bytes},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", false},
          {"normalized", false},
          {"special", token.kind == text::token_kind::control}};
}

json tokenizer_json(const made_tokenizer& tokenizer) {
  json vocabulary = json::object();
  json added = json::array();
  for (std::size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    const made_token& token = tokenizer.tokens[id];
    const bool normal = token.kind == text::token_kind::normal;
    vocabulary[normal ? to_byte_alphabet(token.bytes) : token.bytes] = id;
    if (!normal) added.push_back(added_token(id, token));
  }
  json merges = json::array();
  for (const auto& [left, right] : tokenizer.merges) {
    merges.push_back(to_byte_alphabet(left) + " " + to_byte_alphabet(right));
  }
  json split = {{"type", "Sequence"},
                {"pretokenizers",
                 {{{"type", "Digits"}, {"individual_digits", true}},
                  {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}}}};
  json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", split},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

json tokenizer_config(const made_tokenizer& tokenizer) {
  const auto name = [&](token_id id) {
    return id == kNoToken ? json(nullptr) : json(tokenizer.tokens[static_cast<std::size_t>(id)].bytes);
  };
  json out = {{"tokenizer_class", "GPT2Tokenizer"},
              {"add_bos_token", tokenizer.add_bos},
              {"bos_token", name(tokenizer.bos)},
              {"eos_token", name(tokenizer.eos)}};
  if (!tokenizer.chat_template.empty()) out["chat_template"] = tokenizer.chat_template;
  return out;
}

std::vector<safetensors_entry> entries_of(const made_model& made) {
  std::vector<safetensors_entry> entries;
  for (const made_tensor& tensor : made.tensors) {
    const model::tensor_kind kind = tensor.vector ? model::tensor_kind::f32 : made.kind;
    TANDEM_ASSERT(kind <= model::tensor_kind::bf16);
    std::vector<std::int64_t> shape{tensor.columns};
    if (!tensor.vector) shape.insert(shape.begin(), tensor.rows);
    entries.push_back({tensor.huggingface_name, std::string(model::traits(kind).name), std::move(shape),
                       encode_tensor(tensor.values, kind)});
  }
  return entries;
}

void write_shards(std::vector<safetensors_entry> entries, const std::filesystem::path& folder, int shards) {
  json map = json::object();
  const std::size_t per_shard =
      (entries.size() + static_cast<std::size_t>(shards) - 1) / static_cast<std::size_t>(shards);
  for (int shard = 0; shard < shards; ++shard) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
    const std::size_t begin = std::min(entries.size(), static_cast<std::size_t>(shard) * per_shard);
    const std::size_t end = std::min(entries.size(), begin + per_shard);
    const std::vector<safetensors_entry> part(entries.begin() + static_cast<std::ptrdiff_t>(begin),
                                              entries.begin() + static_cast<std::ptrdiff_t>(end));
    for (const safetensors_entry& entry : part) map[entry.name] = name;
    write_file(folder / name, safetensors_bytes(part));
  }
  const json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", map}};
  write_file(folder / "model.safetensors.index.json", index.dump());
}

}  // namespace

void write_huggingface_folder(const made_model& made, const std::filesystem::path& folder, int shards) {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", config(made).dump(2));
  json generation = json::object();
  if (made.tokenizer.eos != kNoToken) generation["eos_token_id"] = made.tokenizer.eos;
  write_file(folder / "generation_config.json", generation.dump(2));
  write_file(folder / "tokenizer.json", tokenizer_json(made.tokenizer).dump());
  write_file(folder / "tokenizer_config.json", tokenizer_config(made.tokenizer).dump(2));
  if (shards == 1) {
    write_file(folder / "model.safetensors", safetensors_bytes(entries_of(made)));
  } else {
    write_shards(entries_of(made), folder, shards);
  }
}

}  // namespace tandem::test

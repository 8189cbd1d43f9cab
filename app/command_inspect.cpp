#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "app/command.hpp"
#include "engine/loader.hpp"
#include "engine/model_store.hpp"

namespace tandem::app {
namespace {

using ordered_json = nlohmann::ordered_json;

struct inspect_options {
  std::string model;
  bool json = false;
  bool tensors = false;
  bool metadata = false;
  bool show_template = false;
};

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0);
}

/// Bytes of KV per token with bf16 numbers: keys and values of every layer.
std::uint64_t kv_bytes_per_token(const model::description& model) {
  return std::uint64_t{2} * 2 * static_cast<std::uint64_t>(model.kv_heads) *
         static_cast<std::uint64_t>(model.head_dim) * model.layers.size();
}

std::map<std::string, std::uint64_t> bytes_by_kind(const model::model& opened) {
  std::map<std::string, std::uint64_t> kinds;
  for (const model::tensor& tensor : opened.tensors())
    kinds[std::string(model::traits(tensor.kind).name)] += tensor.data.size();
  return kinds;
}

ordered_json sizes(const model::description& model) {
  return {{"vocabulary", model.vocabulary_size},
          {"hidden", model.hidden_size},
          {"intermediate", model.intermediate_size},
          {"layers", model.layers.size()},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"context", model.context_length}};
}

ordered_json tokenizer_summary(const text::tokenizer_spec& spec) {
  return {{"pre_tokenizer", spec.pre == text::pre_tokenizer::smollm ? "smollm" : "qwen2"},
          {"pieces", spec.pieces.size()},
          {"merges", spec.merges.size()},
          {"bos", spec.bos},
          {"eos", spec.eos},
          {"add_bos", spec.add_bos},
          {"end_tokens", spec.end_tokens}};
}

/// "ok", "none", or what is wrong with it.
std::string template_state(const text::tokenizer_spec& spec) {
  if (spec.chat_template.empty()) return "none";
  const auto parsed = engine::load_chat_template("", spec);
  return parsed ? "ok" : parsed.error().message;
}

ordered_json summary(const inspect_options& options, const model::model& opened) {
  const model::description& model = opened.describe();
  ordered_json root = {{"model", engine::served_name(options.model)},
                       {"name", model.name},
                       {"format", model.format},
                       {"architecture", model.architecture},
                       {"parameters", model.parameters},
                       {"sizes", sizes(model)},
                       {"tied_output", model.output == model.embedding},
                       {"rope_theta", model.rope.theta}};
  root["weight_bytes"] = model.weight_bytes;
  for (const auto& [kind, bytes] : bytes_by_kind(opened)) root["bytes_by_kind"][kind] = bytes;
  root["kv_bytes_per_token"] = kv_bytes_per_token(model);
  root["tokenizer"] = tokenizer_summary(opened.tokenizer());
  root["chat_template"] = template_state(opened.tokenizer());
  return root;
}

void print_summary(const ordered_json& root) {
  const auto line = [](const char* name, const std::string& value) { fmt::print("{:<16}{}\n", name, value); };
  line("model", root["model"].get<std::string>() + "  " + root["name"].get<std::string>());
  line("format", root["format"].get<std::string>() + ", architecture " + root["architecture"].get<std::string>());
  line("parameters", fmt::format("{:.1f} M", root["parameters"].get<double>() / 1e6));
  for (const auto& [name, value] : root["sizes"].items()) line(name.c_str(), value.dump());
  line("output matrix", root["tied_output"].get<bool>() ? "the embedding (tied)" : "its own");
  for (const auto& [kind, bytes] : root["bytes_by_kind"].items())
    line(("  " + kind).c_str(), mebibytes(bytes.get<std::uint64_t>()));
  const auto weights = root["weight_bytes"].get<std::uint64_t>();
  const auto per_token = root["kv_bytes_per_token"].get<std::uint64_t>();
  const auto context = root["sizes"]["context"].get<std::uint64_t>();
  line("memory", fmt::format("weights {}, KV {} bytes per token (bf16), {} for the whole context", mebibytes(weights),
                             per_token, mebibytes(per_token * context)));
  line("tokenizer", root["tokenizer"].dump());
  line("chat template", root["chat_template"].get<std::string>());
}

void print_tensors(const model::model& opened) {
  for (const model::tensor& tensor : opened.tensors())
    fmt::print("{:<40} {:<5} {:>8} x {:<8} at {} {}\n", tensor.name, model::traits(tensor.kind).name, tensor.rows,
               tensor.columns, tensor.file, tensor.file_offset);
}

int inspect(const inspect_options& options) {
  const auto path = engine::resolve_model(options.model);
  if (!path) return report(path.error());
  const auto opened = model::open_model(*path);
  if (!opened) return report(opened.error());
  const ordered_json root = summary(options, **opened);
  if (options.json)
    fmt::print("{}\n", root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    print_summary(root);
  if (options.metadata)
    for (const auto& [key, value] : (*opened)->metadata()) fmt::print("{} = {}\n", key, value);
  if (options.tensors) print_tensors(**opened);
  if (options.show_template) fmt::print("{}\n", (*opened)->tokenizer().chat_template);
  return kExitOk;
}

}  // namespace

void add_inspect(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "inspect", "What is in a model file, what it needs, or what is wrong with it");
  const auto options = std::make_shared<inspect_options>();
  command->add_option("model,--model", options->model, "A .gguf file, a Hugging Face folder or a known name")
      ->type_name("MODEL");
  command->add_flag("--json", options->json, "One JSON object");
  command->add_flag("--metadata", options->metadata, "Every metadata entry too");
  command->add_flag("--tensors", options->tensors, "Every tensor too");
  command->add_flag("--chat-template", options->show_template, "The chat template's source too");
  commands.emplace_back(command, [options] { return inspect(*options); });
}

}  // namespace tandem::app

#include "config/flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <vector>

#include "config/edit_distance.hpp"
#include "config/flag_kinds.hpp"
#include "config/speculative_config.hpp"
#include "config/yaml_file.hpp"
#include "core/speculation/method_names.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem::config {
namespace {

void add_model_flags(CLI::App& command, engine_options& engine) {
  command
      .add_option("model,--model", engine.model, "A .gguf file, a Hugging Face folder, or a name of `tandem models`")
      ->type_name("MODEL");
  add_choice<device_kind>(command, "--device", engine.device,
                          {{"auto", device_kind::automatic}, {"cpu", device_kind::cpu}, {"cuda", device_kind::cuda}},
                          "Where to compute; default auto: the best there is")
      ->group(kModelGroup);
  add_choice<weight_dtype>(
      command, "--dtype", engine.dtype,
      {{"auto", weight_dtype::automatic}, {"bf16", weight_dtype::bf16}, {"fp32", weight_dtype::fp32}},
      "default auto: the file's own kinds, fast; bf16, fp32: weights dequantised")
      ->group(kModelGroup);
  add_choice<weight_quantization>(
      command, "--quantization", engine.quantization,
      {{"none", weight_quantization::none}, {"int8", weight_quantization::int8}},
      "default none; int8: weights that the file keeps as f32, f16 or bf16 are rounded to "
      "8 bits at load, one scale per 32, of the model, a draft model and heads; quantised ones stay as they are")
      ->group(kModelGroup);
  add_number(command, "--threads", engine.threads, 1, static_cast<std::int32_t>(limits::kMaxComputeThreads),
             "Compute threads; default: the cores this process may use")
      ->group(kModelGroup);
  command
      .add_option("--chat-template", engine.chat_template_file, "A Jinja file that replaces the model's own template")
      ->type_name("FILE")
      ->group(kModelGroup);
  command.add_option("--seed", engine.seed, "Seed from which requests without one get theirs; default 0")
      ->group(kModelGroup);
}

void add_memory_flags(CLI::App& command, engine_options& engine) {
  const auto most_sequences = static_cast<std::int32_t>(limits::kMaxSequencesInFlight);
  const auto group = [](CLI::Option* option) { option->group(kSchedulingGroup); };
  group(add_number(command, "--max-model-len", engine.max_model_len, 1, limits::kMaxModelLength,
                   "Longest prompt plus answer, in tokens; default: the model's own, as far as memory reaches"));
  group(add_number(command, "--max-num-seqs", engine.max_num_seqs, 1, most_sequences,
                   "Sequences in flight; default 256"));
  group(add_number(command, "--max-num-batched-tokens", engine.max_num_batched_tokens, 1, limits::kMaxBatchedTokens,
                   "Rows of one step: decode, draft and prefill together; default 512"));
  group(add_number(command, "--block-size", engine.block_size, 1, limits::kMaxBlockSize,
                   "Tokens of a KV block; default 16"));
  group(add_number(command, "--num-kv-blocks", engine.num_kv_blocks, 1, limits::kMaxKvBlocks,
                   "KV blocks; default: from the memory"));
  group(command
            .add_option("--kv-cache-memory,--kv-cache-memory-bytes", engine.kv_cache_memory_bytes,
                        "Memory of the KV cache, e.g. 2GiB; default: min(4 GiB, 40 % of what is free)")
            ->transform(CLI::AsSizeValue(false).description(""))
            ->type_name("SIZE"));
  add_choice<kv_cache_dtype>(
      command, "--kv-cache-dtype", engine.kv_dtype,
      {{"auto", kv_cache_dtype::automatic},
       {"bf16", kv_cache_dtype::bf16},
       {"fp32", kv_cache_dtype::fp32},
       {"int8", kv_cache_dtype::int8}},
      "Numbers of the KV cache; int8 holds nearly twice as many tokens as bf16, at some loss of accuracy; default "
      "auto: fp32 with --dtype fp32, else bf16")
      ->group(kSchedulingGroup);
  group(command.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", engine.prefix_caching,
                         "Reuse the KV of equal beginnings; on by default"));
  group(command.add_flag("--enable-chunked-prefill,!--no-enable-chunked-prefill", engine.chunked_prefill,
                         "Split long prompts over steps; on by default"));
  add_choice<bool>(command, "--scheduling-policy", engine.priority_scheduling, {{"fcfs", false}, {"priority", true}},
                   "default fcfs: first come, first served; priority: by the request's priority")
      ->group(kSchedulingGroup);
  group(add_number<std::size_t>(command, "--max-num-queued-reqs", engine.max_queued_requests, 1,
                                limits::kMaxQueuedRequests * 16, "Waiting requests before 429; default 4096"));
  group(add_number<std::size_t>(command, "--max-num-queued-tokens", engine.max_queued_tokens, 1,
                                limits::kMaxQueuedTokens * 16, "Waiting prompt tokens before 429; default 16777216"));
  group(add_number(command, "--stream-interval", engine.stream_interval, 1, 1024,
                   "Tokens per streamed piece; default 1"));
  command.add_flag("--log-prompts", engine.log_prompts, "Log prompts and answers; off by default")
      ->group(kSchedulingGroup);
}

void add_speculation_flags(CLI::App& command, speculation_options& speculation) {
  const auto read = [&speculation](const std::string& text) {
    if (const auto applied = apply_speculative_config(text, speculation); !applied)
      throw CLI::ValidationError(applied.error().message);
  };
  command
      .add_option_function<std::string>(
          "--speculative-config", read,
          "All of it as one JSON object, e.g. {\"method\": \"ngram\"}; its keys are in docs/api.md")
      ->type_name("JSON")
      ->group(kSpeculationGroup);
  command
      .add_option("--draft-model,--speculative-model", speculation.draft_model,
                  "A small model with the same tokens that proposes; default none")
      ->type_name("MODEL")
      ->group(kSpeculationGroup);
  command
      .add_option("--draft-heads", speculation.draft_heads,
                  "A folder with Medusa or EAGLE heads trained for the model, which propose; default none")
      ->type_name("FOLDER")
      ->group(kSpeculationGroup);
  command
      .add_option("--num-speculative-tokens", speculation.num_speculative_tokens, "Tokens proposed per step; default 5")
      ->check(CLI::Range(0, limits::kMaxDraftTokens).description(""))
      ->type_name("0.." + std::to_string(limits::kMaxDraftTokens))
      ->group(kSpeculationGroup);
}

void refuse_later_flags(CLI::App& command) {
  const auto ignored = [](std::int64_t) {};
  command.add_flag_function("--use-v2-block-manager", ignored)->group(kHidden);  // this is the only block manager
  refuse_flag(command, "--gpu-memory-utilization", "this build has no CUDA device; use --kv-cache-memory.");
  refuse_flag(command, "--trace", "traces are not offered yet.");
  const auto one_only = [](const std::string& value) {
    if (value != "1") throw CLI::ValidationError("--tensor-parallel-size", "only 1 is offered yet.");
  };
  command.add_option_function<std::string>("--tensor-parallel-size", one_only)->group(kHidden);
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

std::string plain_name(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

result<void> apply_entry(CLI::App& command, const yaml_entry& entry, const std::string& file) {
  const std::string name = plain_name(entry.key);
  const std::string where = "in " + file + " line " + std::to_string(entry.line);
  CLI::Option* option = command.get_option_no_throw("--" + name);
  if (option == nullptr || name == "config" || name == "help")
    return fail(error_code::invalid_argument, unknown_name_message(command, entry.key, where), entry.key);
  const bool flag_wins = option->count() > 0;
  if (flag_wins || entry.values.empty()) return {};
  try {
    const bool takes_value = option->get_expected_max() > 0;
    for (const std::string& value : entry.values)
      option->add_result(takes_value ? value : option->get_flag_value("--" + name, value));
    option->run_callback();
  } catch (const CLI::Error& problem) {
    return fail(error_code::invalid_argument, std::string(problem.what()) + " (" + where + ")", entry.key);
  }
  return {};
}

result<void> apply_config_file(CLI::App& command, const std::string& path) {
  const auto entries = read_yaml_file(path);
  if (!entries) return tl::unexpected(entries.error());
  for (const yaml_entry& entry : *entries)
    if (auto applied = apply_entry(command, entry, path); !applied) return applied;
  // A file's speculative-config must not undo a short form given as a flag.
  for (const char* name : {"--draft-model", "--draft-heads", "--num-speculative-tokens"}) {
    CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0) option->run_callback();
  }
  return {};
}

}  // namespace

void add_engine_flags(CLI::App& command, options& target) {
  add_model_flags(command, target.engine);
  add_memory_flags(command, target.engine);
  add_speculation_flags(command, target.engine.speculation);
  refuse_later_flags(command);
}

void add_common_flags(CLI::App& command, options& target) {
  const std::map<std::string, log_level> levels = {{"debug", log_level::debug},
                                                   {"info", log_level::info},
                                                   {"warning", log_level::warning},
                                                   {"error", log_level::error}};
  std::string usual;
  for (const auto& [name, level] : levels)
    if (level == target.logging.level) usual = name;
  add_choice<log_level>(command, "--log-level", target.logging.level, levels,
                        "Least severity that is logged, to standard error; default " + usual);
  add_choice<bool>(command, "--log-format", target.logging.json, {{"text", false}, {"json", true}},
                   "Form of log lines; default text");
  command.add_option("--config", target.config_file, "A YAML file with the flags' names as keys; flags win")
      ->type_name("FILE");
}

result<void> finish_options(CLI::App& command, options& target) {
  if (!target.config_file.empty())
    if (auto applied = apply_config_file(command, target.config_file); !applied) return applied;
  if (auto checked = check_server_options(target.server); !checked) return checked;
  const speculation_options& speculation = target.engine.speculation;
  if (speculation.method == draft_method::draft_model && speculation.draft_model.empty())
    return fail(error_code::invalid_argument,
                "--speculative-config: the method \"draft_model\" needs a model; add --draft-model MODEL.",
                "--speculative-config");
  if (speculation.method && kind_of(*speculation.method) == source_kind::head && speculation.draft_heads.empty())
    return fail(error_code::invalid_argument,
                "--speculative-config: the method \"" + std::string(name_of(*speculation.method)) +
                    "\" needs heads; add --draft-heads FOLDER.",
                "--speculative-config");
  return {};
}

std::string unknown_name_message(const CLI::App& command, const std::string& name, const std::string& where) {
  const std::string near = nearest_name(plain_name(name), flag_names(command));
  std::string message = "There is no option \"" + name + "\"";
  if (!where.empty()) message += " " + where;
  return message + (near.empty() ? "; see --help." : "; did you mean \"" + near + "\"?");
}

}  // namespace tandem::config

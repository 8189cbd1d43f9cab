#include "engine/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "engine/model_store.hpp"
#include "grammar/make_compiler.hpp"

namespace tandem::engine {
namespace fs = std::filesystem;
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

void say(const load_log& log, const std::string& line) {
  if (log) log(line);
}

/// What the device is made for: at least what any request may ask for.
std::int32_t most_draft_tokens(const config::speculation_options& speculation) {
  return std::max(limits::kDraftTokensHeld, config::draft_tokens_of(speculation));
}

gpu::kv_dtype kv_dtype_of(config::kv_cache_dtype asked) {
  switch (asked) {
    case config::kv_cache_dtype::bf16:
      return gpu::kv_dtype::bf16;
    case config::kv_cache_dtype::fp32:
      return gpu::kv_dtype::fp32;
    case config::kv_cache_dtype::int8:
      return gpu::kv_dtype::int8;
    case config::kv_cache_dtype::automatic:
      break;
  }
  return gpu::kv_dtype::automatic;
}

/// What the options alone say, before anything is opened.
result<void> check_together(const config::engine_options& options) {
  if (options.device == config::device_kind::cuda)
    return fail(error_code::unsupported, "--device cuda: no CUDA device is compiled in; use --device cpu or auto.");
  if (options.quantization == config::weight_quantization::none || options.dtype == config::weight_dtype::automatic)
    return {};
  return fail(error_code::invalid_argument,
              "--quantization int8 rounds weights to 8 bits and --dtype bf16 or fp32 keeps them longer; give only one "
              "of the two.",
              "--quantization");
}

/// The model's own length unless a smaller one was asked for, then what all KV blocks together can hold.
result<std::int32_t> model_length(const config::engine_options& options, const model::description& model,
                                  const gpu::device_info& device, const load_log& log) {
  if (options.max_model_len > model.context_length)
    return fail(error_code::invalid_argument,
                fmt::format("--max-model-len is {}, but the model was made for {} tokens; lower it.",
                            options.max_model_len, model.context_length),
                "--max-model-len");
  const std::int32_t wanted = options.max_model_len > 0 ? options.max_model_len : model.context_length;
  const std::int64_t held = std::int64_t{device.num_kv_blocks} * device.block_size;
  if (held >= wanted) return wanted;
  if (options.max_model_len > 0)
    return fail(error_code::invalid_argument,
                fmt::format("--max-model-len is {}, but the KV cache holds {} tokens; lower it or raise "
                            "--kv-cache-memory or --num-kv-blocks.",
                            wanted, held),
                "--max-model-len");
  say(log,
      fmt::format("the model could hold {} tokens, the KV cache holds {}: max_model_len is {}", wanted, held, held));
  return static_cast<std::int32_t>(held);
}

/// auto: every source there is. Where a number is fixed and no method named, the draft model, without one the heads,
/// or nothing.
speculation_settings settings_of(const config::speculation_options& speculation, draft_method heads) {
  speculation_settings settings;
  settings.adaptive = config::drafts_adaptively(speculation);
  settings.any_method = !speculation.method.has_value();
  const draft_method usual = speculation.draft_model.empty() ? heads : draft_method::draft_model;
  settings.method = speculation.method.value_or(usual);
  settings.k = config::draft_tokens_of(speculation);
  settings.disable_by_batch_size = speculation.disable_by_batch_size;
  return settings;
}

runtime_options runtime_settings(const config::engine_options& options, std::int32_t max_model_len,
                                 draft_method heads) {
  runtime_options settings;
  settings.model_name = served_name(options.model);
  settings.max_model_len = max_model_len;
  settings.max_num_seqs = options.max_num_seqs;
  settings.max_num_batched_tokens = options.max_num_batched_tokens;
  settings.prefix_caching = options.prefix_caching;
  settings.chunked_prefill = options.chunked_prefill;
  settings.priority_policy = options.priority_scheduling;
  settings.max_queued_requests = options.max_queued_requests;
  settings.max_queued_tokens = options.max_queued_tokens;
  settings.seed = options.seed;
  const config::speculation_options& speculation = options.speculation;
  settings.rule = speculation.rule;
  settings.speculation = settings_of(speculation, heads);
  settings.prompt_lookup_min = speculation.prompt_lookup_min;
  settings.prompt_lookup_max = speculation.prompt_lookup_max;
  settings.suffix_drafter = config::learns_from_outputs(speculation);
  settings.suffix_longest_context = speculation.suffix_longest_context;
  settings.suffix_least_probability = speculation.suffix_least_probability;
  settings.suffix_mebibytes = speculation.suffix_mebibytes;
  settings.max_draft_tokens = most_draft_tokens(speculation);
  settings.stream_interval = options.stream_interval;
  settings.log_prompts = options.log_prompts;
  return settings;
}

/// Null when no draft model is wanted.
result<std::shared_ptr<const model::model>> open_draft(const config::speculation_options& speculation,
                                                       const text::tokenizer& target, const load_log& log) {
  if (speculation.draft_model.empty()) return std::shared_ptr<const model::model>{};
  auto draft = open_with_tokenizer(speculation.draft_model);
  if (!draft) return tl::unexpected(draft.error());
  if (const auto same = text::check_same_vocabulary(target, *draft->tokenizer); !same)
    return fail(
        error_code::invalid_argument,
        fmt::format("--draft-model {} does not fit the model: {}", speculation.draft_model, same.error().message),
        "--draft-model");
  const model::description& described = draft->model->describe();
  say(log, fmt::format("draft {}: {} {}, {:.0f} M parameters", served_name(speculation.draft_model), described.format,
                       described.architecture, static_cast<double>(described.parameters) / 1e6));
  return draft->model;
}

/// Null when no heads are wanted.
result<std::shared_ptr<const model::draft_heads>> open_heads(const config::speculation_options& speculation,
                                                             const model::description& target, const load_log& log) {
  if (speculation.draft_heads.empty()) return std::shared_ptr<const model::draft_heads>{};
  auto heads = model::open_draft_heads(speculation.draft_heads, target);
  if (!heads) {
    heads.error().message = "--draft-heads: " + heads.error().message;
    return heads;
  }
  const model::head_description& described = (*heads)->describe();
  say(log, fmt::format("draft heads {}: {}, {:.1f} M parameters, {} tokens", served_name(speculation.draft_heads),
                       model::name_of(described.kind), static_cast<double>((*heads)->parameters()) / 1e6,
                       described.draft_vocabulary));
  return heads;
}

void say_device(const load_log& log, const gpu::device_info& device, double seconds) {
  say(log, fmt::format("device {}: weights {:.0f} MiB, KV {} blocks of {} tokens, {:.0f} MiB; loaded in {:.1f} s",
                       device.name, static_cast<double>(device.weight_bytes) / kMebibyte, device.num_kv_blocks,
                       device.block_size, static_cast<double>(device.kv_bytes) / kMebibyte, seconds));
}

/// Kinds that are quantised already stay as they are: whoever asked for int8 should know when that was all of them.
void say_rounding(const load_log& log, const config::engine_options& options, const model::model& target) {
  if (options.quantization == config::weight_quantization::none) return;
  for (const model::tensor& weight : target.tensors())
    if (weight.rows > 1 && model::traits(weight.kind).block_elements == 1) return;
  say(log, "--quantization int8: the model's weights are quantised already, so nothing was rounded");
}

/// Control tokens are no part of an output, except where one ends it; rows beyond the tokenizer's never are.
grammar_vocabulary vocabulary_of(const text::tokenizer& tokenizer, std::int32_t rows) {
  grammar_vocabulary vocabulary;
  vocabulary.bytes.resize(static_cast<std::size_t>(rows));
  constexpr bool kSkipSpecial = true;
  for (token_id id = 0; id < std::min(tokenizer.size(), rows); ++id)
    vocabulary.bytes[static_cast<std::size_t>(id)] = std::string(tokenizer.token_bytes(id, kSkipSpecial));
  vocabulary.end_tokens = tokenizer.spec().end_tokens;
  return vocabulary;
}

result<std::string> read_template_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(limits::kMaxTemplateBytes + 1, '\0');  // a device or pipe may never end
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad())
    return fail(error_code::not_found, "--chat-template: cannot read " + file + ".", "--chat-template");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() <= limits::kMaxTemplateBytes) return text;
  return fail(
      error_code::too_large,
      fmt::format("--chat-template: {} has more than {} bytes; give a template.", file, limits::kMaxTemplateBytes),
      "--chat-template");
}

}  // namespace

gpu::host_options device_options(const config::engine_options& options) {
  gpu::host_options device;
  device.threads = options.threads;
  device.dtype = options.dtype == config::weight_dtype::bf16   ? gpu::compute_dtype::bf16
                 : options.dtype == config::weight_dtype::fp32 ? gpu::compute_dtype::fp32
                                                               : gpu::compute_dtype::automatic;
  device.quantization = options.quantization == config::weight_quantization::int8 ? gpu::weight_quantization::int8
                                                                                  : gpu::weight_quantization::none;
  device.kv = kv_dtype_of(options.kv_dtype);
  device.block_size = options.block_size;
  device.num_kv_blocks = options.num_kv_blocks;
  device.kv_bytes = options.kv_cache_memory_bytes;
  device.max_num_seqs = options.max_num_seqs;
  device.max_model_len = options.max_model_len;
  device.max_num_batched_tokens = options.max_num_batched_tokens;
  device.max_draft_tokens = most_draft_tokens(options.speculation);
  return device;
}

result<opened_model> open_with_tokenizer(const std::string& name) {
  const auto path = resolve_model(name);
  if (!path) return tl::unexpected(path.error());
  auto opened = model::open_model(*path);
  if (!opened) return tl::unexpected(opened.error());
  auto tokenizer = text::tokenizer::make((*opened)->tokenizer());
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  return opened_model{std::move(*opened), std::move(*tokenizer)};
}

result<std::shared_ptr<const text::chat_template>> load_chat_template(const std::string& file,
                                                                      const text::tokenizer_spec& spec) {
  std::string source = spec.chat_template;
  if (!file.empty()) {
    auto text = read_template_file(file);
    if (!text) return tl::unexpected(text.error());
    source = std::move(*text);
  }
  if (source.empty()) return std::shared_ptr<const text::chat_template>{};
  auto parsed = text::chat_template::parse(source);
  if (!parsed) return tl::unexpected(parsed.error());
  return std::make_shared<const text::chat_template>(std::move(*parsed));
}

result<loaded_parts> load_parts(const config::engine_options& options, const load_log& log,
                                std::shared_ptr<custom_drafts> drafts) {
  if (auto fits = check_together(options); !fits) return tl::unexpected(fits.error());
  const auto started = std::chrono::steady_clock::now();
  auto target = open_with_tokenizer(options.model);
  if (!target) return tl::unexpected(target.error());
  const model::description& described = target->model->describe();
  say(log, fmt::format("model {}: {} {}, {:.0f} M parameters, {} tokens of context", served_name(options.model),
                       described.format, described.architecture, static_cast<double>(described.parameters) / 1e6,
                       described.context_length));
  const auto draft = open_draft(options.speculation, *target->tokenizer, log);
  if (!draft) return tl::unexpected(draft.error());
  const auto heads = open_heads(options.speculation, described, log);
  if (!heads) return tl::unexpected(heads.error());
  auto chat = load_chat_template(options.chat_template_file, target->tokenizer->spec());
  if (!chat && !options.chat_template_file.empty()) return tl::unexpected(chat.error());
  if (!chat) say(log, "the model's chat template cannot be used, so chats will be refused: " + chat.error().message);
  auto device = gpu::make_host_device(device_options(options), *target->model, draft->get(), heads->get());
  if (!device) return tl::unexpected(device.error());
  const auto length = model_length(options, described, (*device)->info(), log);
  if (!length) return tl::unexpected(length.error());
  say_device(log, (*device)->info(), std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  say_rounding(log, options, *target->model);
  config::engine_options chosen = options;
  // Who brings a source wants it to be used, not only where it is seen to pay.
  if (drafts && !chosen.speculation.method && !chosen.speculation.adaptive)
    chosen.speculation.method = draft_method::custom;
  runtime_options settings = runtime_settings(chosen, *length, (*device)->info().head_method);
  if (*draft) settings.draft_vocabulary = (*draft)->describe().vocabulary_size;
  if (drafts && !options.speculation.method) settings.speculation.method = draft_method::custom;
  auto grammars = make_grammar_compiler(vocabulary_of(*target->tokenizer, (*device)->info().vocabulary_size));
  return loaded_parts{std::move(settings),
                      runtime_parts{std::move(*device), std::move(target->tokenizer), chat ? *chat : nullptr,
                                    std::move(drafts), std::move(grammars)}};
}

result<std::unique_ptr<runtime>> start_engine(const config::engine_options& options, const load_log& log,
                                              std::shared_ptr<custom_drafts> drafts) {
  auto loaded = load_parts(options, log, std::move(drafts));
  if (!loaded) return tl::unexpected(loaded.error());
  return make_runtime(std::move(loaded->options), std::move(loaded->parts));
}

std::string served_name(const std::string& model) {
  fs::path path(model);
  if (!path.has_filename()) path = path.parent_path();  // "folder/"
  if (path.extension() == ".gguf") path = path.stem();
  return path.filename().string();
}

}  // namespace tandem::engine

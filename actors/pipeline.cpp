#include "actors/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "actors/drafter_custom.hpp"
#include "actors/drafter_model.hpp"
#include "actors/drafter_text.hpp"
#include "actors/intake.hpp"
#include "actors/kv_allocator.hpp"
#include "actors/metrics.hpp"
#include "actors/ngram_source.hpp"
#include "actors/scheduler_shell.hpp"
#include "actors/streamer.hpp"
#include "actors/suffix_source.hpp"
#include "actors/supervisor.hpp"
#include "actors/verifier.hpp"
#include "config/limits.hpp"
#include "core/assert.hpp"
#include "core/speculation/method_names.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem {
namespace {

result<void> check_between(const char* flag, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(error_code::invalid_argument,
              fmt::format("{} must be between {} and {}, but it is {}.", flag, low, high, value), flag);
}

/// Counts the actor as living until it has ended and its state is gone.
template <class Handle>
Handle counted(Handle handle, const pipeline_parts& parts) {
  parts.counters->living_actors.fetch_add(1);
  caf::actor_cast<caf::abstract_actor*>(handle)->attach_functor(
      [counters = parts.counters](const caf::error&) { counters->living_actors.fetch_sub(1); });
  return handle;
}

std::vector<token_id> sorted(std::vector<token_id> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

scheduler_shell_options scheduler_options_of(const pipeline_parts& parts) {
  const auto& options = parts.options;
  const auto& device = parts.device->info();
  scheduler_shell_options to;
  to.scheduling.max_num_seqs = options.max_num_seqs;
  to.scheduling.max_num_batched_tokens = options.max_num_batched_tokens;
  to.scheduling.max_model_len = options.max_model_len;
  to.scheduling.block_size = device.block_size;
  to.scheduling.num_kv_blocks = device.num_kv_blocks;
  to.scheduling.chunked_prefill = options.chunked_prefill;
  to.scheduling.prefix_caching = options.prefix_caching;
  to.scheduling.priority_policy = options.priority_policy;
  to.scheduling.rule = options.rule;
  to.scheduling.max_draft_tokens = options.max_draft_tokens;
  to.scheduling.draft_context_limit = device.draft_context_limit;
  to.scheduling.head_draft_limit = device.head_draft_limit;
  to.scheduling.draft_vocabulary = options.draft_vocabulary;
  to.scheduling.drafters = draft_sources_of(parts);
  to.scheduling.vocabulary_size = device.vocabulary_size;
  to.scheduling.end_tokens = sorted(parts.tokenizer->spec().end_tokens);
  to.scheduling.token_bytes = [tokenizer = parts.tokenizer](token_id id, bool skip_special) {
    return tokenizer->token_bytes(id, skip_special);
  };
  to.speculation = options.speculation;
  to.counters = parts.counters;
  to.check_always = parts.check_always;
  return to;
}

request_bounds bounds_of(const pipeline_parts& parts) {
  const auto& options = parts.options;
  const auto& device = parts.device->info();
  request_bounds bounds;
  bounds.max_model_len = options.max_model_len;
  bounds.vocabulary_size = device.vocabulary_size;
  bounds.kv_tokens = static_cast<std::int64_t>(device.num_kv_blocks) * device.block_size;
  bounds.max_num_batched_tokens = options.max_num_batched_tokens;
  bounds.chunked_prefill = options.chunked_prefill;
  bounds.max_draft_tokens = options.max_draft_tokens;
  bounds.methods = draft_methods_of(parts);
  bounds.end_tokens = sorted(parts.tokenizer->spec().end_tokens);
  bounds.structured_output = parts.grammars != nullptr;
  return bounds;
}

intake_options intake_options_of(const pipeline_parts& parts, scheduler_actor scheduler) {
  const auto& options = parts.options;
  const auto queued = options.max_queued_requests ? options.max_queued_requests : limits::kMaxQueuedRequests;
  intake_options to;
  to.bounds = bounds_of(parts);
  to.max_live_requests = queued + static_cast<std::size_t>(options.max_num_seqs);
  to.max_live_tokens = options.max_queued_tokens ? options.max_queued_tokens : limits::kMaxQueuedTokens;
  to.seed = options.seed;
  to.prompts = parts.prompts;
  to.grammars = parts.grammars;
  to.metrics = parts.metrics;
  to.counters = parts.counters;
  to.scheduler = std::move(scheduler);
  return to;
}

result<void> check_suffix(const runtime_options& options) {
  if (!options.suffix_drafter) {
    if (options.speculation.method != draft_method::suffix) return {};
    return fail(error_code::invalid_argument, "The method suffix needs the suffix drafter, which is switched off.",
                "--speculative-config");
  }
  if (auto ok =
          check_between("suffix_decoding_max_tree_depth", options.suffix_longest_context, 2, limits::kMaxSuffixContext);
      !ok)
    return ok;
  if (!(options.suffix_least_probability >= 0 && options.suffix_least_probability <= 1))
    return fail(error_code::invalid_argument, "suffix_decoding_min_token_prob must be between 0 and 1.",
                "--speculative-config");
  return check_between("suffix_memory_mib", options.suffix_mebibytes, 1, limits::kMaxSuffixMebibytes);
}

std::unique_ptr<text_source> text_source_of(const runtime_options& options, draft_method method) {
  if (method == draft_method::ngram)
    return std::make_unique<ngram_source>(ngram_source::options{options.prompt_lookup_min, options.prompt_lookup_max});
  TANDEM_ASSERT(method == draft_method::suffix);
  suffix_statistics::options statistics;
  statistics.bytes = static_cast<std::size_t>(options.suffix_mebibytes) << 20;
  statistics.longest_context = options.suffix_longest_context;
  statistics.least_probability = options.suffix_least_probability;
  return std::make_unique<suffix_source>(statistics);
}

custom_source::options custom_options_of(const pipeline_parts& parts) {
  return {parts.drafts, parts.device->info().vocabulary_size,
          [metrics = parts.metrics](draft_fault fault) { metrics->count_draft_fault(fault); }};
}

}  // namespace

result<void> check_options(const runtime_options& options, const gpu::device_info& device) {
  const auto most_seqs = static_cast<std::int64_t>(limits::kMaxSequencesInFlight);
  if (auto ok = check_between("--max-num-seqs", options.max_num_seqs, 1, most_seqs); !ok) return ok;
  if (auto ok = check_between("--max-num-batched-tokens", options.max_num_batched_tokens, 1, limits::kMaxBatchedTokens);
      !ok)
    return ok;
  const std::int64_t kv_tokens = static_cast<std::int64_t>(device.num_kv_blocks) * device.block_size;
  const std::int64_t longest = std::min<std::int64_t>(kv_tokens, limits::kMaxModelLength);
  if (auto ok = check_between("--max-model-len", options.max_model_len, 1, longest); !ok) return ok;
  if (auto ok = check_between("--num-speculative-tokens", options.speculation.k, 0, options.max_draft_tokens); !ok)
    return ok;
  if (auto ok = check_between("max_draft_tokens", options.max_draft_tokens, 0, limits::kMaxDraftTokens); !ok) return ok;
  if (auto ok = check_between("prompt_lookup_max", options.prompt_lookup_max, 1, limits::kMaxNgram); !ok) return ok;
  if (auto ok = check_between("prompt_lookup_min", options.prompt_lookup_min, 1, options.prompt_lookup_max); !ok)
    return ok;
  if (auto ok = check_between("--stream-interval", options.stream_interval, 1, limits::kMaxModelLength); !ok) return ok;
  if (options.speculation.method == draft_method::draft_model && device.draft_context_limit == 0)
    return fail(error_code::invalid_argument,
                "The method draft_model needs a draft model; give one with --draft-model.", "--speculative-config");
  if (kind_of(options.speculation.method) == source_kind::head && options.speculation.method != device.head_method)
    return fail(error_code::invalid_argument,
                fmt::format("The method {0} needs {0} heads made for the model; give their folder with --draft-heads.",
                            name_of(options.speculation.method)),
                "--speculative-config");
  if (options.speculation.method == draft_method::ngram && !options.ngram_drafter)
    return fail(error_code::invalid_argument, "The method ngram needs the n-gram drafter, which is switched off.",
                "--speculative-config");
  return check_suffix(options);
}

std::vector<draft_method> draft_sources_of(const pipeline_parts& parts) {
  std::vector<draft_method> sources;
  if (parts.options.ngram_drafter) sources.push_back(draft_method::ngram);
  if (parts.options.suffix_drafter) sources.push_back(draft_method::suffix);
  if (parts.device->info().draft_context_limit > 0) sources.push_back(draft_method::draft_model);
  if (parts.drafts) sources.push_back(draft_method::custom);
  if (parts.device->info().head_method != draft_method::none) sources.push_back(parts.device->info().head_method);
  return sources;
}

std::array<bool, kDraftMethods> draft_methods_of(const pipeline_parts& parts) {
  std::array<bool, kDraftMethods> methods{};
  methods[index_of(draft_method::none)] = true;
  for (const draft_method method : draft_sources_of(parts)) methods[index_of(method)] = true;
  return methods;
}

streamer_actor spawn_streamer_of(caf::actor_system& system, const pipeline_parts& parts, const intake_actor& intake,
                                 const metrics_actor& metrics) {
  return counted(spawn_streamer(system, {parts.tokenizer, parts.options.stream_interval, intake, metrics}), parts);
}

kv_allocator_actor spawn_allocator_of(caf::actor_system& system, const pipeline_parts& parts, std::uint32_t pool_gen,
                                      const scheduler_actor& scheduler) {
  block_allocator::options options;
  options.num_blocks = parts.device->info().num_kv_blocks;
  options.block_size = parts.device->info().block_size;
  options.prefix_caching = parts.options.prefix_caching;
  return counted(spawn_kv_allocator(system, options, pool_gen, scheduler), parts);
}

drafter_actor spawn_drafter_of(caf::actor_system& system, const pipeline_parts& parts, draft_method method,
                               const scheduler_actor& scheduler) {
  if (computes(method)) return counted(spawn_drafter_model(system, parts.device, method, scheduler), parts);
  if (method == draft_method::custom)
    return counted(spawn_drafter_custom(system, custom_options_of(parts), parts.drafts_thread, scheduler), parts);
  return counted(spawn_drafter_text(system, method, text_source_of(parts.options, method), scheduler), parts);
}

pipeline start_pipeline(caf::actor_system& system, const std::shared_ptr<const pipeline_parts>& parts) {
  supervised_actors actors;
  actors.metrics = counted(spawn_metrics(system, parts->metrics), *parts);
  actors.scheduler = counted(spawn_scheduler(system, scheduler_options_of(*parts)), *parts);
  actors.allocator = spawn_allocator_of(system, *parts, actors.pool_gen, actors.scheduler);
  actors.verifier = counted(spawn_verifier(system, parts->device, actors.scheduler), *parts);
  for (draft_method method : draft_sources_of(*parts))
    actors.drafters[static_cast<std::size_t>(method)] = spawn_drafter_of(system, *parts, method, actors.scheduler);
  actors.intake = counted(spawn_intake(system, intake_options_of(*parts, actors.scheduler)), *parts);
  actors.streamer = spawn_streamer_of(system, *parts, actors.intake, actors.metrics);

  caf::anon_send(actors.scheduler, connect_peers{actors.verifier, actors.intake, actors.metrics});
  caf::anon_send(actors.scheduler, connect_allocator{actors.allocator, actors.pool_gen, false});
  caf::anon_send(actors.scheduler, connect_streamer{actors.streamer});
  for (draft_method method : draft_sources_of(*parts))
    caf::anon_send(actors.scheduler, connect_drafter{method, actors.drafters[static_cast<std::size_t>(method)]});
  caf::anon_send(actors.intake, connect_streamer{actors.streamer});

  pipeline started;
  started.intake = actors.intake;
  started.supervisor = counted(spawn_supervisor(system, parts, std::move(actors)), *parts);
  return started;
}

}  // namespace tandem

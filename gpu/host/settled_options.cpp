#include "gpu/host/settled_options.hpp"

#include <algorithm>
#include <string>

#include "config/limits.hpp"
#include "gpu/host/host_resources.hpp"

namespace tandem::gpu::host {
namespace {

struct bounded_option {
  const char* name;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

result<void> check_bounds(const host_options& options) {
  const bounded_option all[] = {
      {"threads", options.threads, 0, static_cast<std::int64_t>(limits::kMaxComputeThreads)},
      {"block_size", options.block_size, 1, limits::kMaxBlockSize},
      {"num_kv_blocks", options.num_kv_blocks, 0, limits::kMaxKvBlocks},
      {"max_num_seqs", options.max_num_seqs, 1, static_cast<std::int64_t>(limits::kMaxSequencesInFlight)},
      {"max_model_len", options.max_model_len, 0, limits::kMaxModelLength},
      {"max_num_batched_tokens", options.max_num_batched_tokens, 1, limits::kMaxBatchedTokens},
      {"max_draft_tokens", options.max_draft_tokens, 0, limits::kMaxDraftTokens}};
  for (const bounded_option& each : all) {
    if (each.value >= each.least && each.value <= each.most) continue;
    return fail(error_code::invalid_argument,
                std::string(each.name) + " is " + std::to_string(each.value) + "; choose a number from " +
                    std::to_string(each.least) + " to " + std::to_string(each.most) + ".",
                each.name);
  }
  return {};
}

packing packing_of(const host_options& options) {
  switch (options.dtype) {
    case compute_dtype::bf16:
      return packing::bf16;
    case compute_dtype::fp32:
      return packing::fp32;
    case compute_dtype::automatic:
      break;
  }
  return options.quantization == weight_quantization::int8 ? packing::int8 : packing::native;
}

kv_format format_of(kv_dtype asked, compute_dtype compute) {
  switch (asked) {
    case kv_dtype::bf16:
      return kv_format::bf16;
    case kv_dtype::fp32:
      return kv_format::fp32;
    case kv_dtype::int8:
      return kv_format::int8;
    case kv_dtype::automatic:
      break;
  }
  return compute == compute_dtype::fp32 ? kv_format::fp32 : kv_format::bf16;
}

result<void> check_feature_layers(const host_options& options, const model::model& target) {
  const auto layers = static_cast<std::int32_t>(target.describe().layers.size());
  if (options.feature_layers.size() > limits::kMaxFeatureLayers)
    return fail(error_code::invalid_argument,
                "feature_layers has more than " + std::to_string(limits::kMaxFeatureLayers) + " layers; name fewer.",
                "feature_layers");
  for (const std::int32_t layer : options.feature_layers) {
    if (layer >= 0 && layer <= layers) continue;
    return fail(
        error_code::invalid_argument,
        "feature_layers names layer " + std::to_string(layer) + "; the model has 0 to " + std::to_string(layers) + ".",
        "feature_layers");
  }
  return {};
}

}  // namespace

result<settled_options> settle(const host_options& options, const model::model& target) {
  if (auto fits = check_bounds(options); !fits) return tl::unexpected(fits.error());
  if (auto fit = check_feature_layers(options, target); !fit) return tl::unexpected(fit.error());
  if (options.quantization != weight_quantization::none && options.dtype != compute_dtype::automatic)
    return fail(error_code::invalid_argument,
                "quantization int8 needs dtype auto: bf16 and fp32 keep weights in more than 8 bits.", "quantization");
  settled_options settled{options};
  const std::int32_t context = target.describe().context_length;
  if (options.max_model_len > context)
    return fail(error_code::invalid_argument,
                "max_model_len is " + std::to_string(options.max_model_len) + " but the model was made for " +
                    std::to_string(context) + " positions; choose at most that.",
                "max_model_len");
  if (options.max_model_len == 0) settled.asked.max_model_len = context;
  auto set = choose_isa(options.isa);
  if (!set) return tl::unexpected(set.error());
  settled.set = *set;
  const auto most_threads = static_cast<std::int32_t>(limits::kMaxComputeThreads);
  settled.threads = options.threads > 0 ? options.threads : std::min(granted_cores(), most_threads);
  settled.how = packing_of(options);
  settled.kv = format_of(options.kv, options.dtype);
  return settled;
}

}  // namespace tandem::gpu::host

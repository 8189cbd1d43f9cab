#include "gpu/host/host_device.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "gpu/host/host_core.hpp"
#include "gpu/host/host_resources.hpp"

namespace tandem::gpu {
namespace {

using namespace host;

constexpr double kTargetShareOfProgress = 0.75;  // of the fraction reported, when there is a draft model too

/// The options with every "0: choose" chosen.
struct settled_options {
  host_options asked;
  isa set = isa::portable;
  std::int32_t threads = 1;
  kv_format kv = kv_format::bf16;
  packing how = packing::native;
};

class host_device final : public device {
 public:
  explicit host_device(std::shared_ptr<host_core> core) : core_(std::move(core)) {}
  const device_info& info() const override { return core_->info; }
  std::unique_ptr<target_stream> open_target_stream() override { return make_target_stream(core_); }
  std::unique_ptr<draft_stream> open_draft_stream() override {
    return core_->draft_work ? make_draft_stream(core_) : nullptr;
  }

 private:
  std::shared_ptr<host_core> core_;
};

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
  for (const std::int32_t layer : options.feature_layers)
    if (layer < 0 || layer > layers)
      return fail(error_code::invalid_argument,
                  "feature_layers names layer " + std::to_string(layer) + "; the model has 0 to " +
                      std::to_string(layers) + ".",
                  "feature_layers");
  return {};
}

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

kv_shape kv_shape_of(const packed_model& packed, const settled_options& options) {
  kv_shape shape;
  shape.layers = static_cast<std::int32_t>(packed.layers.size());
  shape.kv_heads = packed.shape.kv_heads;
  shape.head_dim = packed.shape.head_dim;
  shape.block_size = options.asked.block_size;
  shape.format = options.kv;
  return shape;
}

/// Blocks both models' pages are made for; `bytes_each` is for target and draft together.
result<std::int32_t> count_blocks(const settled_options& options, std::uint64_t bytes_each) {
  if (options.asked.num_kv_blocks > 0) return options.asked.num_kv_blocks;
  std::uint64_t budget = options.asked.kv_bytes;
  if (budget == 0) budget = std::min(limits::kDefaultKvBytes, available_memory() / 100 * limits::kKvPercentOfAvailable);
  const std::uint64_t per_sequence = static_cast<std::uint64_t>(
      (options.asked.max_model_len + options.asked.block_size - 1) / options.asked.block_size);
  const std::uint64_t useful = per_sequence * static_cast<std::uint64_t>(options.asked.max_num_seqs);
  const std::uint64_t blocks =
      std::min({budget / bytes_each, useful, static_cast<std::uint64_t>(limits::kMaxKvBlocks)});
  if (blocks > 0) return static_cast<std::int32_t>(blocks);
  return fail(error_code::io, "One block of KV needs " + std::to_string(bytes_each) + " bytes but only " +
                                  std::to_string(budget) + " may be used; free memory or raise the KV size.");
}

result<std::unique_ptr<model_executor>> make_executor(packed_model packed, const settled_options& options,
                                                      std::int32_t blocks, std::int32_t positions, compute_team& team) {
  kv_shape shape = kv_shape_of(packed, options);
  shape.blocks = blocks;
  auto cache = kv_cache::make(shape);
  if (!cache) return tl::unexpected(cache.error());
  return std::make_unique<model_executor>(
      std::move(packed), std::move(*cache), team,
      model_executor::options{options.set, options.asked.max_num_batched_tokens, positions});
}

/// Packs one model and reports its share of the progress.
result<packed_model> load(const model::model& source, const settled_options& options, compute_team& team, double from,
                          double to) {
  const auto& report = options.asked.on_progress;
  std::function<void(double)> own;
  if (report) own = [&report, from, to](double fraction) { report(from + (to - from) * fraction); };
  return pack_model(source, options.how, options.set, team, own);
}

void describe_device(host_core& core, const settled_options& options) {
  device_info& info = core.info;
  const auto pages = [&](const model_executor& of) {
    return kv_cache::block_bytes(of.cache().shape()) * static_cast<std::uint64_t>(of.cache().shape().blocks);
  };
  info.name = "cpu (" + std::string(isa_name(options.set)) + ", " + std::to_string(options.threads) +
              (options.threads == 1 ? " thread)" : " threads)");
  info.threads = options.threads;
  info.block_size = options.asked.block_size;
  info.num_kv_blocks = core.target->cache().shape().blocks;
  info.weight_bytes = core.target->weight_bytes() + (core.draft ? core.draft->weight_bytes() : 0);
  info.kv_bytes = pages(*core.target) + (core.draft ? pages(*core.draft) : 0);
  info.draft_context_limit = core.draft ? core.draft->limits().max_positions : 0;
  info.vocabulary_size = core.target->shape().vocabulary_size;
}

/// Executors for the packed models, on pages of as many blocks as fit.
result<void> make_executors(host_core& core, const settled_options& options, packed_model target,
                            std::optional<packed_model> draft, std::int32_t draft_context) {
  const std::uint64_t bytes_each = kv_cache::block_bytes(kv_shape_of(target, options)) +
                                   (draft ? kv_cache::block_bytes(kv_shape_of(*draft, options)) : 0);
  const auto blocks = count_blocks(options, bytes_each);
  if (!blocks) return tl::unexpected(blocks.error());
  auto executor = make_executor(std::move(target), options, *blocks, options.asked.max_model_len, *core.team);
  if (!executor) return tl::unexpected(executor.error());
  core.target = std::move(*executor);
  if (!options.asked.feature_layers.empty()) core.target->keep_features(options.asked.feature_layers);
  if (!draft) return {};
  auto drafting = make_executor(std::move(*draft), options, *blocks, draft_context, *core.team);
  if (!drafting) return tl::unexpected(drafting.error());
  core.draft = std::move(*drafting);
  return {};
}

result<std::shared_ptr<host_core>> make_core(const settled_options& options, const model::model& target,
                                             const model::model* draft) {
  const denormals_off same_rounding_everywhere;
  auto core = std::make_shared<host_core>();
  core->team = std::make_unique<compute_team>(options.threads);
  const double share = draft == nullptr ? 1.0 : kTargetShareOfProgress;
  auto packed = load(target, options, *core->team, 0.0, share);
  if (!packed) return tl::unexpected(packed.error());
  std::optional<packed_model> packed_draft;
  if (draft != nullptr) {
    auto loaded = load(*draft, options, *core->team, share, 1.0);
    if (!loaded) return tl::unexpected(loaded.error());
    packed_draft = std::move(*loaded);
  }
  const std::int32_t draft_context =
      draft == nullptr ? 0 : std::min(draft->describe().context_length, options.asked.max_model_len);
  auto made = make_executors(*core, options, std::move(*packed), std::move(packed_draft), draft_context);
  if (!made) return tl::unexpected(made.error());
  const std::int32_t slots = options.asked.max_num_seqs;
  core->target_work = std::make_unique<target_runner>(*core->target, *core->team, slots);
  if (core->draft)
    core->draft_work =
        std::make_unique<draft_runner>(*core->draft, *core->team, slots, core->target->shape().vocabulary_size);
  describe_device(*core, options);
  return core;
}

}  // namespace

result<std::unique_ptr<device>> make_host_device(const host_options& options, const model::model& target,
                                                 const model::model* draft) {
  const auto settled = settle(options, target);
  if (!settled) return tl::unexpected(settled.error());
  try {
    auto core = make_core(*settled, target, draft);
    if (!core) return tl::unexpected(core.error());
    return std::make_unique<host_device>(std::move(*core));
  } catch (const std::exception& failure) {
    return fail(error_code::io, "The model does not fit into memory (" + std::string(failure.what()) + ", " +
                                    std::to_string(available_memory() >> 20) +
                                    " MiB are left); choose a smaller model or lower max_num_batched_tokens.");
  }
}

}  // namespace tandem::gpu

#include "gpu/host/host_device.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "gpu/host/eagle_runner.hpp"
#include "gpu/host/host_core.hpp"
#include "gpu/host/host_resources.hpp"
#include "gpu/host/medusa_runner.hpp"
#include "gpu/host/settled_options.hpp"

namespace tandem::gpu {
namespace {

using namespace host;

constexpr double kTargetShareOfProgress = 0.75;  // of the fraction reported, when there is a draft model too

class host_device final : public device {
 public:
  explicit host_device(std::shared_ptr<host_core> core) : core_(std::move(core)) {}
  const device_info& info() const override { return core_->info; }
  std::unique_ptr<target_stream> open_target_stream() override { return make_target_stream(core_); }
  std::unique_ptr<draft_stream> open_draft_stream() override {
    return core_->draft_work ? make_draft_stream(core_) : nullptr;
  }
  std::unique_ptr<draft_stream> open_head_stream() override {
    return core_->head_work ? make_head_stream(core_) : nullptr;
  }

 private:
  std::shared_ptr<host_core> core_;
};

/// The files; null: none.
struct device_models {
  const model::model* target = nullptr;
  const model::model* draft = nullptr;
  const model::draft_heads* heads = nullptr;
};

/// What is to be computed with, before memory is divided.
struct packed_parts {
  packed_model target;
  std::optional<packed_model> draft;
  std::int32_t draft_context = 0;
  std::optional<packed_heads> heads;

  bool heads_have_pages() const { return heads && heads->kind != model::head_kind::medusa; }
};

kv_shape kv_shape_of(const model_shape& model, std::size_t layers, const settled_options& options) {
  kv_shape shape;
  shape.layers = static_cast<std::int32_t>(layers);
  shape.kv_heads = model.kv_heads;
  shape.head_dim = model.head_dim;
  shape.block_size = options.asked.block_size;
  shape.format = options.kv;
  return shape;
}

std::uint64_t bytes_per_block(const packed_parts& parts, const settled_options& options) {
  const auto pages = [&](const model_shape& model, std::size_t layers) {
    return kv_cache::block_bytes(kv_shape_of(model, layers, options));
  };
  std::uint64_t bytes = pages(parts.target.shape, parts.target.layers.size());
  if (parts.draft) bytes += pages(parts.draft->shape, parts.draft->layers.size());
  if (parts.heads_have_pages()) bytes += pages(parts.heads->eagle.shape, 1) + eagle_runner::block_bytes(*parts.heads);
  return bytes;
}

/// Blocks that all pages are made for; `bytes_each` is for target, draft and heads together.
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

result<kv_cache> make_cache(const model_shape& model, std::size_t layers, const settled_options& options,
                            std::int32_t blocks) {
  kv_shape shape = kv_shape_of(model, layers, options);
  shape.blocks = blocks;
  return kv_cache::make(shape);
}

result<std::unique_ptr<model_executor>> make_executor(packed_model packed, const settled_options& options,
                                                      std::int32_t blocks, std::int32_t positions, compute_team& team) {
  auto cache = make_cache(packed.shape, packed.layers.size(), options, blocks);
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
  info.weight_bytes = core.target->weight_bytes() + (core.draft ? core.draft->weight_bytes() : 0) +
                      (core.head ? core.head->weight_bytes() : 0);
  info.kv_bytes =
      pages(*core.target) + (core.draft ? pages(*core.draft) : 0) + (core.head ? core.head->kept_bytes() : 0);
  info.draft_context_limit = core.draft ? core.draft->limits().max_positions : 0;
  info.vocabulary_size = core.target->shape().vocabulary_size;
  if (!core.head) return;
  info.head_method = core.head->method();
  info.head_draft_limit = core.head->most_drafts();
}

result<std::unique_ptr<draft_head>> make_head(packed_heads heads, host_core& core, const settled_options& options) {
  const std::int32_t slots = options.asked.max_num_seqs;
  if (heads.kind == model::head_kind::medusa)
    return std::make_unique<medusa_runner>(std::move(heads), *core.target, *core.team, slots);
  auto cache = make_cache(heads.eagle.shape, 1, options, core.target->cache().shape().blocks);
  if (!cache) return tl::unexpected(cache.error());
  return std::make_unique<eagle_runner>(std::move(heads), std::move(*cache), *core.target, *core.team, slots);
}

/// Executors for the packed models, on pages of as many blocks as fit.
result<void> make_executors(host_core& core, const settled_options& options, packed_parts parts) {
  const auto blocks = count_blocks(options, bytes_per_block(parts, options));
  if (!blocks) return tl::unexpected(blocks.error());
  auto executor = make_executor(std::move(parts.target), options, *blocks, options.asked.max_model_len, *core.team);
  if (!executor) return tl::unexpected(executor.error());
  core.target = std::move(*executor);
  if (parts.draft) {
    auto drafting = make_executor(std::move(*parts.draft), options, *blocks, parts.draft_context, *core.team);
    if (!drafting) return tl::unexpected(drafting.error());
    core.draft = std::move(*drafting);
  }
  if (!parts.heads) return {};
  auto head = make_head(std::move(*parts.heads), core, options);
  if (!head) return tl::unexpected(head.error());
  core.head = std::move(*head);
  return {};
}

/// Runners for what the executors can do.
void make_runners(host_core& core, const settled_options& options) {
  const std::int32_t slots = options.asked.max_num_seqs;
  core.target_work =
      std::make_unique<target_runner>(*core.target, *core.team, slots, core.head.get(), options.asked.feature_layers);
  if (core.draft)
    core.draft_work =
        std::make_unique<draft_runner>(*core.draft, *core.team, slots, core.target->shape().vocabulary_size);
  if (core.head)
    core.head_work = std::make_unique<head_runner>(*core.head, core.target_work->slots(), slots,
                                                   core.target->cache().shape().blocks);
}

result<packed_parts> load_all(const device_models& models, const settled_options& options, compute_team& team) {
  const double share = models.draft == nullptr ? 1.0 : kTargetShareOfProgress;
  auto target = load(*models.target, options, team, 0.0, share);
  if (!target) return tl::unexpected(target.error());
  packed_parts parts{.target = std::move(*target), .draft = {}, .heads = {}};
  if (models.draft != nullptr) {
    auto draft = load(*models.draft, options, team, share, 1.0);
    if (!draft) return tl::unexpected(draft.error());
    parts.draft = std::move(*draft);
    parts.draft_context = std::min(models.draft->describe().context_length, options.asked.max_model_len);
  }
  if (models.heads != nullptr) {
    auto heads = pack_heads(*models.heads, options.how, options.set, team);
    if (!heads) return tl::unexpected(heads.error());
    parts.heads = std::move(*heads);
  }
  return parts;
}

result<std::shared_ptr<host_core>> make_core(const settled_options& options, const device_models& models) {
  const denormals_off same_rounding_everywhere;
  auto core = std::make_shared<host_core>();
  core->team = std::make_unique<compute_team>(options.threads);
  auto parts = load_all(models, options, *core->team);
  if (!parts) return tl::unexpected(parts.error());
  if (auto made = make_executors(*core, options, std::move(*parts)); !made) return tl::unexpected(made.error());
  make_runners(*core, options);
  describe_device(*core, options);
  return core;
}

}  // namespace

result<std::unique_ptr<device>> make_host_device(const host_options& options, const model::model& target,
                                                 const model::model* draft, const model::draft_heads* heads) {
  const auto settled = settle(options, target);
  if (!settled) return tl::unexpected(settled.error());
  try {
    auto core = make_core(*settled, {&target, draft, heads});
    if (!core) return tl::unexpected(core.error());
    return std::make_unique<host_device>(std::move(*core));
  } catch (const std::exception& failure) {
    return fail(error_code::io, "The model does not fit into memory (" + std::string(failure.what()) + ", " +
                                    std::to_string(available_memory() >> 20) +
                                    " MiB are left); choose a smaller model or lower max_num_batched_tokens.");
  }
}

}  // namespace tandem::gpu

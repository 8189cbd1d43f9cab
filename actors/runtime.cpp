#include "actors/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "actors/pipeline.hpp"
#include "actors/runtime_in_system.hpp"
#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

using milliseconds = std::chrono::milliseconds;

/// Waits, by looking now and then, until `done` or `bound` has passed. True: done.
template <class Condition>
bool wait_until(Condition done, milliseconds bound) {
  const auto until = std::chrono::steady_clock::now() + bound;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(limits::kDrainPoll);
  }
  return true;
}

/// Few workers: with as many as cores they would take turns with the device's threads.
std::size_t worker_threads() {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return cores <= 4 ? 1 : std::clamp<std::size_t>(cores / 8, 2, 4);
}

/// An actor system of our own, for callers that have none.
struct prepared_config : caf::actor_system_config {
  prepared_config() {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", worker_threads());
    set("scheduler.max-throughput", limits::kMaxActorThroughput);
  }
};
struct own_system {
  prepared_config config;
  caf::actor_system system{config};
};

class actor_runtime final : public runtime {
 public:
  actor_runtime(std::unique_ptr<own_system> own, caf::actor_system& system, std::shared_ptr<const pipeline_parts> parts,
                std::shared_ptr<const text::chat_template> chat_template)
      : own_(std::move(own)),
        system_(system),
        parts_(std::move(parts)),
        chat_template_(std::move(chat_template)),
        actors_(start_pipeline(system, parts_)) {}

  ~actor_runtime() override {
    drain(milliseconds{0});
    caf::anon_send(actors_.supervisor, stop_everything{});
    wait_until([this] { return parts_->counters->living_actors.load() == 0; }, limits::kActorShutdown);
  }

  request_id submit(generation_request request, std::shared_ptr<outlet> client) override {
    const request_id id{next_id_.fetch_add(1)};
    parts_->counters->live_requests.fetch_add(1);
    caf::anon_send(actors_.intake, submit_generation{id, std::make_shared<const generation_request>(std::move(request)),
                                                     std::move(client), system_.clock().now()});
    return id;
  }

  void cancel(request_id id) override { caf::anon_send(actors_.intake, cancel_generation{id}); }

  void encode(prompt_source prompt, std::function<void(result<std::vector<token_id>>)> answer) override {
    auto shared = std::make_shared<const prompt_source>(std::move(prompt));
    if (auto queued = parts_->prompts->push(std::move(shared), answer); !queued)
      answer(tl::unexpected(std::move(queued.error())));
  }

  runtime_status status() const override {
    const auto& counters = *parts_->counters;
    runtime_status now;
    now.running = counters.running.load(std::memory_order_relaxed);
    now.waiting = counters.waiting.load(std::memory_order_relaxed);
    now.blocks_used = counters.blocks_used.load(std::memory_order_relaxed);
    now.blocks_total = device().num_kv_blocks;
    now.device = device().name;
    now.draining = counters.draining.load();
    now.stuck = now.running + now.waiting > 0 && since_progress() > limits::kStuckDevice;
    now.grammars_stuck = parts_->grammars && parts_->grammars->status().stuck;
    now.ready = !counters.failed.load() && !now.stuck;
    return now;
  }

  std::string metrics_text() const override {
    parts_->metrics->show(*parts_->counters);
    if (parts_->grammars) parts_->metrics->show(parts_->grammars->status());
    return parts_->metrics->text();
  }
  batch_view batch() const override { return parts_->metrics->batch(); }
  void count_rejected(const std::string& reason) override { parts_->metrics->count_rejected(reason); }
  void count_websocket(int delta) override { parts_->metrics->count_websocket(delta); }
  const runtime_options& options() const override { return parts_->options; }
  std::array<bool, kDraftMethods> draft_methods() const override { return draft_methods_of(*parts_); }
  const text::tokenizer& tokenizer() const override { return *parts_->tokenizer; }
  bool has_chat_template() const override { return chat_template_ != nullptr; }
  std::string_view chat_template_source() const override {
    return chat_template_ ? chat_template_->source() : std::string_view{};
  }
  const gpu::device_info& device() const override { return parts_->device->info(); }

  void drain(milliseconds bound) override {
    parts_->counters->draining.store(true);
    caf::anon_send(actors_.intake, begin_drain{});
    if (wait_until([this] { return finished(); }, bound)) return;
    caf::anon_send(actors_.intake, cancel_everything{});
    wait_until([this] { return finished(); }, limits::kCancelGrace);
  }

  void kill_for_test(const std::string& actor) override { caf::anon_send(actors_.supervisor, kill_actor{actor}); }

 private:
  bool finished() const { return parts_->counters->failed.load() || parts_->counters->live_requests.load() == 0; }
  std::chrono::nanoseconds since_progress() const {
    const std::chrono::nanoseconds last{parts_->counters->last_progress_ns.load(std::memory_order_relaxed)};
    return system_.clock().now().time_since_epoch() - last;
  }

  // Destroyed from the last to the first: handles, then what actors shared, then the system that waits for them.
  std::unique_ptr<own_system> own_;
  caf::actor_system& system_;
  std::shared_ptr<const pipeline_parts> parts_;
  std::shared_ptr<const text::chat_template> chat_template_;
  std::atomic<std::uint64_t> next_id_{1};
  pipeline actors_;
};

result<std::shared_ptr<const pipeline_parts>> make_parts(runtime_options options, runtime_parts& from) {
  if (!from.device || !from.tokenizer)
    return fail(error_code::invalid_argument, "A runtime needs a device and a tokenizer.");
  if (auto ok = check_options(options, from.device->info()); !ok) return tl::unexpected(ok.error());
  if (options.speculation.method == draft_method::custom && !from.drafts)
    return fail(error_code::invalid_argument,
                "The method custom needs a draft source of the program's own (tandem::Options::draft_source).",
                "--speculative-config");
  auto parts = std::make_shared<pipeline_parts>();
  parts->device = std::move(from.device);
  parts->tokenizer = std::move(from.tokenizer);
  parts->prompts = std::make_shared<encoder>(encoder::options{parts->tokenizer, from.chat_template,
                                                              limits::kEncoderThreads, limits::kMaxQueuedEncodes,
                                                              limits::kMaxQueuedEncodeBytes, options.max_model_len});
  if (from.grammars)
    parts->grammars = std::make_shared<compile_queue>(compile_queue::options{std::move(from.grammars)});
  parts->metrics = std::make_shared<metrics_registry>(options.model_name, parts->device->info().num_kv_blocks);
  parts->counters = std::make_shared<live_counters>();
  parts->drafts = std::move(from.drafts);
  if (parts->drafts) parts->drafts_thread = std::make_shared<call_thread>(limits::kMaxQueuedDraftCalls);
  parts->options = std::move(options);
  return parts;
}

/// Libraries may throw while threads and memory are taken; here that becomes an error.
result<std::unique_ptr<runtime>> start(caf::actor_system* host, runtime_options options, runtime_parts from) {
  try {
    auto parts = make_parts(std::move(options), from);
    if (!parts) return tl::unexpected(std::move(parts.error()));
    auto own = host ? nullptr : std::make_unique<own_system>();
    caf::actor_system& system = host ? *host : own->system;
    return std::make_unique<actor_runtime>(std::move(own), system, std::move(*parts), std::move(from.chat_template));
  } catch (const std::exception& problem) {
    return fail(error_code::io, fmt::format("The engine's actors could not be started: {}.", problem.what()));
  }
}

}  // namespace

result<std::unique_ptr<runtime>> make_runtime(runtime_options options, runtime_parts parts) {
  return start(nullptr, std::move(options), std::move(parts));
}

result<std::unique_ptr<runtime>> make_runtime_in(caf::actor_system& system, runtime_options options,
                                                 runtime_parts parts) {
  return start(&system, std::move(options), std::move(parts));
}

}  // namespace tandem

#pragma once
/// All actors of one engine, spawned and connected in order inside a given actor system.

#include <array>
#include <memory>

#include "actors/call_thread.hpp"
#include "actors/compile_queue.hpp"
#include "actors/custom_source.hpp"
#include "actors/encoder.hpp"
#include "actors/live_counters.hpp"
#include "actors/metrics_registry.hpp"
#include "actors/protocol.hpp"
#include "actors/runtime.hpp"
#include "core/kv/block_allocator.hpp"

namespace tandem {

/// What the actors share; made by whoever starts them, outlives none of them.
struct pipeline_parts {
  runtime_options options;
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<encoder> prompts;
  std::shared_ptr<compile_queue> grammars;  ///< null: no structured output
  std::shared_ptr<metrics_registry> metrics;
  std::shared_ptr<live_counters> counters;
  std::shared_ptr<custom_drafts> drafts;       ///< the program's own source; null: none
  std::shared_ptr<call_thread> drafts_thread;  ///< that asks it
  bool check_always = false;                   ///< all invariants of the scheduler after each message (tests)
};

/// The two doors. Everything else is reached through them.
struct pipeline {
  intake_actor intake;
  supervisor_actor supervisor;
};

/// Error: invalid_argument when the options contradict each other or the device.
result<void> check_options(const runtime_options& options, const gpu::device_info& device);

/// Options must have passed check_options(). When it returns, messages may be sent.
pipeline start_pipeline(caf::actor_system& system, const std::shared_ptr<const pipeline_parts>& parts);

/// Spawns the actors that a supervisor replaces when they die.
streamer_actor spawn_streamer_of(caf::actor_system& system, const pipeline_parts& parts, const intake_actor& intake,
                                 const metrics_actor& metrics);
kv_allocator_actor spawn_allocator_of(caf::actor_system& system, const pipeline_parts& parts, std::uint32_t pool_gen,
                                      const scheduler_actor& scheduler);
drafter_actor spawn_drafter_of(caf::actor_system& system, const pipeline_parts& parts, draft_method method,
                               const scheduler_actor& scheduler);
/// What requests may ask for: `none` and the sources this engine has.
std::array<bool, kDraftMethods> draft_methods_of(const pipeline_parts& parts);
/// Draft sources this engine has.
std::vector<draft_method> draft_sources_of(const pipeline_parts& parts);

}  // namespace tandem

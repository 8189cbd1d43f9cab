#pragma once
/// The one decider: commits, stops, preempts, ends; plans every step. Pure: messages in, messages out, time passed in.
/// Owner: the scheduler actor, which delivers what it returns. Single-threaded.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/messages.hpp"
#include "core/speculation/policy.hpp"
#include "core/step.hpp"

namespace tandem {

struct scheduler_options {
  std::int32_t max_num_seqs = 256;
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t max_model_len = 2048;
  std::int32_t block_size = 16;
  std::int32_t num_kv_blocks = 0;
  bool chunked_prefill = true;
  bool prefix_caching = true;
  bool priority_policy = false;  ///< else first come, first served
  acceptance_rule rule = acceptance_rule::coupled;
  std::int32_t max_draft_tokens = 8;                        ///< k the device was made for
  std::int32_t draft_context_limit = 0;                     ///< positions a draft model can hold; 0 = no draft model
  std::int32_t head_draft_limit = limits::kMaxDraftTokens;  ///< drafts of one run that draft heads can make
  std::int32_t draft_vocabulary = 0;   ///< ids from here on a draft model cannot read; 0 = it reads all
  std::vector<draft_method> drafters;  ///< sources that exist
  std::int32_t vocabulary_size = 0;
  std::vector<token_id> end_tokens;  ///< sorted
  std::uint32_t pool_gen = 1;
  /// Visible bytes of a token, for stop strings. Empty function: no text (tests).
  std::function<std::string_view(token_id, bool skip_special)> token_bytes;
};

/// Everything one input made the scheduler say. Delivered in this order; empty parts are not sent.
struct scheduler_commands {
  std::vector<propose> proposals;  ///< `methods[i]` says to whom
  std::vector<draft_method> methods;
  std::optional<run_step> step;  ///< sent *with* the proposals
  std::optional<tokens_committed> committed;
  std::optional<outputs_closed> outputs;  ///< to the drafter that learns from them
  std::optional<adopt_blocks> adopt;      ///< before anything else the allocator hears
  std::optional<share_blocks> share;      ///< before the release that may end another hold on these blocks
  std::optional<publish_blocks> publish;
  std::optional<release_blocks> release;
  std::vector<match_prefix> matches;
  std::optional<lease_blocks> lease;
  std::vector<request_retired> retired;
  std::optional<step_measured> measured;
};

class scheduler {
 public:
  scheduler(scheduler_options options, std::unique_ptr<speculation_policy> policy);
  ~scheduler();

  // Each takes one message, may start a step when none is in flight, and returns what is to be sent.
  scheduler_commands on(const admit_sequence& message, time_point now);
  scheduler_commands on(const cancel_generation& message, time_point now);
  scheduler_commands on(const prefix_matched& message, time_point now);
  scheduler_commands on(const blocks_leased& message, time_point now);
  scheduler_commands on(const step_finished& message, time_point now);
  scheduler_commands on(const draft_finished& message, time_point now);
  scheduler_commands on(const drafter_changed& message, time_point now);
  scheduler_commands on(const allocator_restarted& message, time_point now);
  /// Deadlines; every limits::kTick.
  scheduler_commands on_tick(time_point now);

  struct status {
    std::int32_t running = 0;
    std::int32_t waiting = 0;
    std::int32_t blocks_used = 0;        ///< held by live sequences, each once
    std::int32_t blocks_leased = 0;      ///< held by the lease, unused
    std::int32_t blocks_obtainable = 0;  ///< leased, and about as many as the pool would lease
    step_id steps = 0;
    bool step_in_flight = false;
    time_point step_started{};
  };
  status current() const;
  /// All invariants of docs/architecture.md that one actor can see: for tests and the simulation.
  void check() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace tandem
